import { HttpException } from '@nestjs/common';
import { LockError } from '../errors.js';

/**
 * Puts Nest's `HttpException` under our errors, whose type says that they are one: any filter, of Nest's or the application's, then answers
 * with the right status. The engine, which a command line uses without Nest, must not load it; and two sets of classes, translated one into
 * the other wherever an error leaves, would miss one of the ways: promises, signals, handles, streams.
 */
Object.setPrototypeOf(LockError, HttpException);
Object.setPrototypeOf(LockError.prototype, HttpException.prototype);
