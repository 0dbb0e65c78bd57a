import { ProgressReports } from '#cyclone/worker/leases/progress-reports.js';

const lease = (node: string, generation = 1) => ({ runId: '7', node, generation });
const report = (node: string, fraction: number, note: string | null = null, generation = 1) => ({
  ...lease(node, generation),
  fraction,
  note,
});
const silent = (node: string) => ({ ...lease(node), fraction: null, note: null });

describe('reports that wait for a renewal (R18)', () => {
  it('go with one, the newest of each lease, and once', () => {
    const reports = new ProgressReports();
    reports.add([report('a', 0.1, 'one'), report('a', 0.2)]);
    expect(reports.take([lease('a'), lease('b')])).toEqual([report('a', 0.2, 'one'), silent('b')]);
    expect(reports.take([lease('a'), lease('b')])).toBeUndefined();
  });

  it('are forgotten with a lease that is no longer held', () => {
    const reports = new ProgressReports();
    reports.add([report('a', 0.1), report('b', 0.1, null, 1)]);
    expect(reports.take([lease('b', 2)])).toBeUndefined();
    expect(reports.take([lease('a'), lease('b')])).toBeUndefined();
  });

  it('come back when they were not written, older than what was reported meanwhile', () => {
    const reports = new ProgressReports();
    reports.add([report('a', 0.1, 'one'), report('b', 0.1, 'one')]);
    const beats = reports.take([lease('a'), lease('b'), lease('c')])!;
    reports.add([report('b', 0.2)]);
    reports.putBack(beats);
    expect(reports.take([lease('a'), lease('b'), lease('c')])).toEqual([
      report('a', 0.1, 'one'),
      report('b', 0.2, 'one'),
      silent('c'),
    ]);
  });
});
