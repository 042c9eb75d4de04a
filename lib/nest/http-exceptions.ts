import { HttpException } from '@nestjs/common';
import { LockError } from '../errors.js';

/**
 * Makes Nest's `HttpException` the superclass of our errors at run time, as their type declares. So any filter, of
 * Nest's or the application's, answers with the right status.
 *
 * The engine, which a command line uses without Nest, must not load Nest. A second set of classes would need a
 * translation wherever an error leaves, and would miss a way: promises, signals, handles, streams.
 */
Object.setPrototypeOf(LockError, HttpException);
Object.setPrototypeOf(LockError.prototype, HttpException.prototype);
