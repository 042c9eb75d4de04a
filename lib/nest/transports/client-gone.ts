import { HttpException } from '@nestjs/common';

/** No client reads the response, but Nest logs errors that are no `HttpException`. */
const CLIENT_CLOSED_REQUEST = 499;

/** What ends a wait whose client has gone. */
export const clientGone = (): Error =>
  new HttpException('The client went away while it waited.', CLIENT_CLOSED_REQUEST);
