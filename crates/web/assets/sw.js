// Keeps the page on the phone, so that it opens without a network. Only the page: tickets and scans are in IndexedDB,
// and calls of the API are none of its business.

const NAME = 'gate-{{version}}';
const ADDRESSES = '{{addresses}}';

addEventListener('install', event => {
  // All or nothing: modules of two versions must never meet.
  event.waitUntil(caches.open(NAME).then(cache => cache.addAll(ADDRESSES)).then(() => skipWaiting()));
});

addEventListener('activate', event => {
  const drop = name => name.startsWith('gate-') && name !== NAME && caches.delete(name);
  event.waitUntil(caches.keys().then(names => Promise.all(names.map(drop))).then(() => clients.claim()));
});

addEventListener('fetch', event => {
  const { pathname, origin } = new URL(event.request.url);
  if (origin !== location.origin || event.request.method !== 'GET') return;
  if (pathname !== '/gate' && !pathname.startsWith('/gate/')) return;
  const kept = caches.open(NAME).then(cache => cache.match(event.request, { ignoreSearch: true }));
  event.respondWith(kept.then(response => response ?? fetch(event.request)));
});
