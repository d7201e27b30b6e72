// SPDX-License-Identifier: MIT
'use strict';

class TnkError extends Error {
  constructor(code, message, details) {
    super(message);
    this.code = code;
    Object.assign(this, details);
  }
}
Object.defineProperty(TnkError.prototype, 'name', { value: 'TnkError', configurable: true });

function derive(name, parent = TnkError) {
  const Class = { [name]: class extends parent {} }[name];
  Object.defineProperty(Class.prototype, 'name', { value: name, configurable: true });
  return Class;
}

const ConnectionError = derive('ConnectionError');
const classes = {
  TnkError,
  AbortError: derive('AbortError'),
  AuthenticationError: derive('AuthenticationError'),
  BillingError: derive('BillingError'),
  BudgetError: derive('BudgetError'),
  ClosedError: derive('ClosedError'),
  ConflictError: derive('ConflictError'),
  ConnectionError,
  TimeoutError: derive('TimeoutError', ConnectionError),
  NotFoundError: derive('NotFoundError'),
  RateLimitError: derive('RateLimitError'),
  ServerError: derive('ServerError'),
  SessionError: derive('SessionError'),
};

const byCode = {
  TNK_ECANCELED: classes.AbortError,
  TNK_ECREDENTIAL: classes.AuthenticationError,
  TNK_EAUTH: classes.AuthenticationError,
  TNK_EBILLING: classes.BillingError,
  TNK_EBUDGET: classes.BudgetError,
  TNK_ECLOSED: classes.ClosedError,
  TNK_ECONFLICT: classes.ConflictError,
  TNK_EDNS: ConnectionError,
  TNK_ECONN: ConnectionError,
  TNK_EPROXY: ConnectionError,
  TNK_ETLS: ConnectionError,
  TNK_ECERT: ConnectionError,
  TNK_ETIMEDOUT: classes.TimeoutError,
  TNK_ENOTFOUND: classes.NotFoundError,
  TNK_ERATE: classes.RateLimitError,
  TNK_ESERVER: classes.ServerError,
  TNK_EFAILED: classes.ServerError,
  TNK_ESESSION: classes.SessionError,
};

function makeError(code, message, details) {
  return new (byCode[code] ?? TnkError)(code, message, details);
}

module.exports = { classes, makeError };
