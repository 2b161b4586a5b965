/**
 * The part of the package that is loaded with the core, once it is: `Core`, the class of the core, its functions `hostText` and `initSync`,
 * and `drive`. A page loads it while it renders.
 */
export const runtime = {};
