import { Type } from 'class-transformer';
import {
  ArrayMaxSize,
  ArrayNotEmpty,
  IsArray,
  IsEmail,
  IsInt,
  IsOptional,
  Matches,
  Max,
  Min,
  ValidateNested,
} from 'class-validator';

/** How many lines an order may have. */
export const MAX_LINES = 500;

const ID = /^[\w.-]{1,64}$/;
const MAX_QUANTITY = 1_000_000;
const QUANTITY = { message: `quantity must be a whole number from 1 to ${MAX_QUANTITY}` };

export const isOrderId = (text: string): boolean => ID.test(text);

export class OrderLineDto {
  @Matches(ID, { message: 'productId must be 1 to 64 letters, digits, dots, dashes or underscores' })
  productId!: string;

  /** Text, because a JSON number is a float. */
  @Matches(/^\d{1,10}(\.\d{1,4})?$/, {
    message: 'unitPrice must be a decimal number as text with at most 4 decimals, such as "9.80"',
  })
  unitPrice!: string;

  @IsInt(QUANTITY)
  @Min(1, QUANTITY)
  @Max(MAX_QUANTITY, QUANTITY)
  quantity!: number;

  /** The part of the price that is not charged: "0.15" is 15 %. */
  @IsOptional()
  @Matches(/^(0(\.\d{1,4})?|1(\.0{1,4})?)$/, {
    message: 'discount must be a decimal number as text from "0" to "1" with at most 4 decimals, such as "0.15"',
  })
  discount?: string;
}

export class PlaceOrderDto {
  @Matches(ID, { message: 'id must be 1 to 64 letters, digits, dots, dashes or underscores' })
  id!: string;

  @IsEmail()
  email!: string;

  @IsArray()
  @ArrayNotEmpty()
  @ArrayMaxSize(MAX_LINES)
  @ValidateNested({ each: true })
  @Type(() => OrderLineDto)
  lines!: OrderLineDto[];
}
