// The login page. The secret key is sent once; the server returns a cookie that scripts cannot read,
// and a token that other ports of the host cannot read.

const id = (name) => document.getElementById(name);

async function log_in() {
  const response = await fetch("/login", {
    method: "POST",
    headers: { "X-Haul-Console": "1", "Content-Type": "application/json" },
    body: JSON.stringify({ access_key: id("access-key").value.trim(), secret_key: id("secret-key").value }),
  });
  if (!response.ok) throw new Error((await response.text()).trim());
  localStorage.setItem("haul-page-token", (await response.json()).page_token);
  // The login page stands in for any page that needs a login. The hash names the view.
  if (location.pathname === "/login") location.replace("/" + location.hash);
  else location.reload();
}

const button = id("login").querySelector("button");

id("login").addEventListener("submit", async (event) => {
  event.preventDefault();
  button.disabled = true;
  id("message").textContent = "";
  try {
    await log_in();
  } catch (error) {
    id("message").textContent = error instanceof TypeError ? "The server is not reachable." : error.message;
    id("secret-key").value = "";
    id("secret-key").focus();
  }
  button.disabled = false;
});
// Until now, Enter would have sent the form without this script.
button.disabled = false;
