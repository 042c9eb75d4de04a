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

export const charge = (orderId: string): Promise<Receipt> =>
  Promise.resolve(new Receipt(orderId));

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
