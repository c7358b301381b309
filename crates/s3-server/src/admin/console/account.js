// The key that is logged in, with a button to log out; or a link to log in.

import { get, show_login } from "/console.js";
import { h } from "/console/elements.js";
import { own_headers } from "/serve/s3.js";

const account = document.getElementById("account");

async function log_out() {
  await get("/logout", { method: "POST", headers: own_headers() });
  localStorage.removeItem("haul-page-token");
  location.replace("/login");
}

async function show() {
  const { has_keys, name, has_session } = await (await get("/session.json", { headers: own_headers() })).json();
  if (!has_keys) return;
  if (!name) return show_login();
  const button = h("button", { className: "small", onclick: () => log_out().catch((error) => { button.textContent = error.message; }) }, "Log out");
  // A login by HTTP Basic ends with the browser.
  account.replaceChildren(h("span", { className: "soft" }, name), " ", ...(has_session ? [button] : []));
}

show().catch(() => {});
