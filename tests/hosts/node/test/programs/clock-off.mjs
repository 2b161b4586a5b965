// A clock that is CLOCK_OFF milliseconds off, imported before a program.
const [Real, off] = [Date, Number(process.env.CLOCK_OFF)];

globalThis.Date = class Date extends Real {
  constructor(...given) {
    super(...(given.length > 0 ? given : [Date.now()]));
  }

  static now() {
    return Real.now() + off;
  }
};
