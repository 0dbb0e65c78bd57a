import { Injectable } from '@nestjs/common';
import { InvalidOptionError } from '../model/errors/setup-errors.js';

/** How messages call a Cyclone. */
export const cycloneLabel = (name: string | undefined): string =>
  name === undefined ? 'the unnamed CycloneModule' : `the CycloneModule named "${name}"`;

/** Which Cyclones an application has. One for each application, so nothing leaks into the next one of the process. */
@Injectable()
export class CycloneNames {
  private readonly known = new Map<string | undefined, number>();

  add(name: string | undefined): void {
    this.known.set(name, (this.known.get(name) ?? 0) + 1);
  }

  has(name: string | undefined): boolean {
    return this.known.has(name);
  }

  /** Why the name cannot be used; two modules of one name would each take half of the handlers' work. */
  problemOf(name: string | undefined): InvalidOptionError | undefined {
    const count = this.known.get(name) ?? 0;
    if (count < 2) return undefined;
    return new InvalidOptionError(
      'name',
      `is taken: the application imports ${count} times ${cycloneLabel(name)}. ` +
        `Import one dynamic module everywhere, or give the others a name of their own.`,
    );
  }

  /** Why something cannot belong to a Cyclone of this name. */
  unknownProblem(name: string | undefined, where: string): InvalidOptionError {
    const all = [...this.known.keys()].map((known) => (known === undefined ? '(the unnamed one)' : `"${known}"`));
    return new InvalidOptionError(
      `cyclone of ${where}`,
      `means ${cycloneLabel(name)}, which the application does not import. It imports ${all.join(', ')}.`,
    );
  }
}
