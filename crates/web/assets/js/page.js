// Small things that every part of the page needs: elements, dialogs.

/**
 * The element of an id, which must be there.
 * @template {HTMLElement} [T=HTMLElement]
 * @param {string} id
 * @returns {T}
 */
export function $(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no #${id}`);
  return /** @type {T} */ (element);
}

/**
 * Shows a dialog; resolves to the value of the button that closed it, '' if it was dismissed.
 * @param {string} id
 * @returns {Promise<string>}
 */
export function ask(id) {
  /** @type {HTMLDialogElement} */
  const dialog = $(id);
  dialog.returnValue = '';
  dialog.showModal();
  return new Promise(resolve => dialog.addEventListener('close', () => resolve(dialog.returnValue), { once: true }));
}

/**
 * Fills a list of choices.
 * @param {HTMLSelectElement} select
 * @param {{value: string, text: string}[]} choices
 * @param {string | null} chosen
 */
export function fillSelect(select, choices, chosen) {
  select.replaceChildren(...choices.map(({ value, text }) => new Option(text, value, false, value === chosen)));
  if (select.selectedIndex < 0) select.selectedIndex = 0;
}

/** Random characters that name a scan; also without TLS, where `crypto.randomUUID` is missing. */
export const newNonce = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), byte => byte.toString(16).padStart(2, '0')).join('');
