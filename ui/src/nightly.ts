/** Whether `make nightly` runs the tests: with longer texts, and with every case of a matrix. */
export const isNightly = Boolean(process.env["FORETOKEN_NIGHTLY"]);
