/**
 * Reads so many bytes of a socket, leaves what is behind them, and pauses the socket; throws a `Gone` where the connection ends before. (The
 * event `readable` comes again and again while there are fewer bytes than wanted.)
 */
export function exactly(socket, size, Gone) {
  if (size === 0) return Buffer.alloc(0);
  return new Promise((resolve, reject) => {
    const parts = [];
    let length = 0;
    const ends = ["end", "close", "error"];
    const stop = () => {
      socket.pause().off("data", heard);
      for (const event of ends) socket.off(event, gone);
    };
    const gone = () => {
      stop();
      reject(new Gone());
    };
    const heard = (part) => {
      parts.push(part);
      length += part.length;
      if (length < size) return;
      stop();
      const all = Buffer.concat(parts);
      if (length > size) socket.unshift(all.subarray(size));
      resolve(all.subarray(0, size));
    };
    if (socket.readableEnded || socket.destroyed) return gone();
    for (const event of ends) socket.on(event, gone);
    socket.on("data", heard).resume();
  });
}
