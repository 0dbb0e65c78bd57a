/** Whether everything is played, as `npm run proving` does, instead of the part that fits into every run of the tests. */
export const LONG_PROGRAMME = process.env.CYCLONE_PROVING === '1';
