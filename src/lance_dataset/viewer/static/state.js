// What is shown, kept in the part of the address behind "#", so that it can be shared and gone back to.

const listeners = [];

export function state() {
  return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

export function change(values) {
  const merged = { ...state(), ...values };
  const kept = Object.entries(merged).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const hash = `#${new URLSearchParams(kept)}`;
  if (hash === location.hash || (hash === "#" && !location.hash)) return;
  location.hash = hash;
}

export function onChange(listener) {
  listeners.push(listener);
}

window.addEventListener("hashchange", () => listeners.forEach((listener) => listener(state())));
