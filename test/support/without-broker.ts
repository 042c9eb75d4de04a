import { ServerKafka, ServerRMQ } from '@nestjs/microservices';

/** Without a broker: the test hands it the messages. */
export class KafkaWithoutBroker extends ServerKafka {
  override async listen(listening: () => void): Promise<void> {
    await Promise.resolve();
    listening();
  }

  override async close(): Promise<void> {}
}

/** Without a broker: the test hands it the messages and the channel. */
export class RabbitWithoutBroker extends ServerRMQ {
  /** The client of the broker is not installed. */
  protected override loadPackageSynchronously<T>(): T {
    return {} as T;
  }

  override async listen(listening: () => void): Promise<void> {
    await Promise.resolve();
    listening();
  }

  override async close(): Promise<void> {}
}
