/** What the documented examples call: the shop around them. */
export class Receipt {
  constructor(readonly paid: string) {}
}

export class Order {
  constructor(
    readonly id: string,
    readonly customer: { readonly id: number },
  ) {}
}

/** The payment of this order takes until the till is opened, then never again. */
export const SLOW = 'slow';

let open = (): void => undefined;
const opened = new Promise<void>((resolve) => {
  open = resolve;
});

export function openTill(): void {
  open();
}

export async function charge(orderId: string): Promise<Receipt> {
  if (orderId === SLOW) await opened;
  return new Receipt(orderId);
}

export const ship = (orderId: string): Promise<string> =>
  Promise.resolve(orderId);

export const move = (
  from: string,
  to: string,
  amount: number,
): Promise<string> => Promise.resolve(`${amount} from ${from} to ${to}`);

export const mergeOrders = (customerId: number): Promise<number> =>
  Promise.resolve(customerId);

export const countStock = (sku: string): Promise<number> =>
  Promise.resolve(sku.length);

export const writeReport = (): Promise<void> => Promise.resolve();
