import { looksMinified } from './minified-name.js';

describe('an identifier (R40)', () => {
  it.each([
    '',
    'a',
    'aB',
    '_',
    '$',
    '_a',
    '$e',
    '__b',
    '_1',
    'e1',
    't12',
    'aB3',
    'a_1',
    'class_1',
    '_class',
    '_class2',
    'class2',
    'default_1',
    '_default',
  ])('looks like the work of a build tool: %j', (name) => expect(looksMinified(name)).toBe(true));

  it.each([
    'pay',
    'charge',
    'PlaceOrder',
    '_charge',
    'step1',
    'http2',
    'classify',
    'default',
    'class',
    'x509Check',
    'größe',
  ])('looks written by hand: %j', (name) => expect(looksMinified(name)).toBe(false));
});
