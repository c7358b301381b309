// The login page. The secret key is sent once; the server returns a cookie that scripts cannot read,
// and a token that other ports of the host cannot read. With a provider, the browser goes to its page,
// and comes back to this one with a code.

const id = (name) => document.getElementById(name);

// The view to show after a login with a provider, which leaves the page.
const VIEW = "haul-view";

// The state of the login that this tab has started. A server at another port of the host could set the
// cookie of a login, but not this.
const STATE = "haul-login-state";

// The provider that sends the browser back to this page, if one does.
const [, returning] = location.pathname.match(/^\/login\/callback\/([^/]+)$/) ?? [];

async function post(path, fields) {
  const response = await fetch(path, {
    method: "POST",
    headers: { "X-Haul-Console": "1", "Content-Type": "application/json" },
    body: JSON.stringify(fields),
  });
  if (!response.ok) throw new Error((await response.text()).trim());
  return response.json();
}

function begin({ page_token }) {
  localStorage.setItem("haul-page-token", page_token);
  const view = returning ? sessionStorage.getItem(VIEW) ?? "" : location.hash;
  // The login page stands in for any page that needs a login. The hash names the view.
  if (location.pathname.startsWith("/login")) location.replace("/" + view);
  else location.reload();
}

const button = id("login").querySelector("button");

function fail(error) {
  id("message").textContent = error instanceof TypeError ? "The server is not reachable." : error.message;
}

id("login").addEventListener("submit", async (event) => {
  event.preventDefault();
  button.disabled = true;
  id("message").textContent = "";
  try {
    begin(await post("/login", { access_key: id("access-key").value.trim(), secret_key: id("secret-key").value }));
  } catch (error) {
    fail(error);
    id("secret-key").value = "";
    id("secret-key").focus();
  }
  button.disabled = false;
});
// Until now, Enter would have sent the form without this script.
button.disabled = false;

async function start(provider) {
  sessionStorage.setItem(VIEW, returning ? sessionStorage.getItem(VIEW) ?? "" : location.hash);
  const { url } = await post("/login/start", { provider });
  sessionStorage.setItem(STATE, new URL(url).searchParams.get("state"));
  location.assign(url);
}

// Finishes a login with a provider.
async function finish() {
  const query = new URLSearchParams(location.search);
  history.replaceState(null, "", location.pathname);
  const refused = query.get("error_description") ?? query.get("error");
  if (refused) throw new Error(`The provider refuses the login: ${refused}`);
  const [code, state] = [query.get("code"), query.get("state")];
  if (!code) return;
  if (state !== sessionStorage.getItem(STATE)) throw new Error("This tab has not started this login: try again.");
  sessionStorage.removeItem(STATE);
  begin(await post("/login/finish", { provider: returning, code, state }));
}

async function show_providers() {
  const { providers } = await (await fetch("/login/providers.json")).json();
  id("providers").append(...providers.map((provider) => {
    const choice = document.createElement("button");
    choice.type = "button";
    choice.textContent = `Log in with ${provider}`;
    choice.addEventListener("click", () => start(provider).catch(fail));
    return choice;
  }));
}

show_providers().catch(() => {});
if (returning) finish().catch(fail);
