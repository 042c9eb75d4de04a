/** An option or a decorator is wrong. Thrown when the class is defined, when the module starts, or by the call that brought it. */
export class LockConfigurationError extends Error {
  override readonly name = 'LockConfigurationError';
}
