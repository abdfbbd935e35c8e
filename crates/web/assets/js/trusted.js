// The only policy that the page's Content-Security-Policy allows: addresses of scripts must be ours.

/** @param {string} address */
function ownAddress(address) {
  if (new URL(address, location.href).origin !== location.origin) throw new TypeError('not a script of ours: ' + address);
  return address;
}

/** @type {any} */
const factory = Reflect.get(globalThis, 'trustedTypes');

/** @type {{createScriptURL: (address: string) => any}} */
const policy = factory?.createPolicy('stampede', { createScriptURL: ownAddress }) ?? { createScriptURL: ownAddress };

/**
 * The address of one of our scripts, as workers want it.
 * @param {string} address
 */
export const scriptAddress = address => policy.createScriptURL(address);
