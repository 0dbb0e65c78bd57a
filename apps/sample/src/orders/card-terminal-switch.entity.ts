import { Column, Entity, PrimaryColumn } from 'typeorm';

/** A setting of the stand-in for the card terminal. */
@Entity('card_terminal')
export class CardTerminalSwitch {
  @PrimaryColumn('text')
  name!: string;

  @Column('boolean', { name: 'is_on' })
  on!: boolean;
}
