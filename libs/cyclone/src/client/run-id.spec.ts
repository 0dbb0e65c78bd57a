import { checkRunId } from './run-id.js';

describe('checkRunId', () => {
  it.each(['1', '42', '9007199254740993', '9223372036854775807'])('takes %s, whatever its size (S62)', (id) => {
    expect(checkRunId(id)).toBe(id);
  });

  it.each(['0', '-1', '007', '9223372036854775808', '99999999999999999999999'])(
    'knows that no run is called %s',
    (id) => {
      expect(() => checkRunId(id)).toThrow(expect.objectContaining({ code: 'CYCLONE_RUN_NOT_FOUND' }));
    },
  );

  it.each(['abc', '', '1.5', '1e3', ' 1', '1 or 1=1', 42, 42n, null, undefined, {}])(
    'refuses %p, which is no id',
    (id) => {
      expect(() => checkRunId(id)).toThrow(expect.objectContaining({ code: 'CYCLONE_INVALID_OPTION' }));
    },
  );
});
