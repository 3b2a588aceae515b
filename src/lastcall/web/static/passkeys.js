// Passkeys: asks the browser for one and hands its answer to an ordinary form. Every page that has this has another
// way too, for browsers without passkeys and without scripts.
(() => {
  "use strict";

  const bytes = (text) =>
    Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
  const text = (buffer) =>
    btoa(String.fromCharCode(...new Uint8Array(buffer))).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  const isThere = Boolean(window.isSecureContext && window.PublicKeyCredential && navigator.credentials);

  const asAsked = (options) => {
    const known = (list) => (list || []).map((entry) => ({ ...entry, id: bytes(entry.id) }));
    const asked = { ...options, challenge: bytes(options.challenge) };
    if (options.user) asked.user = { ...options.user, id: bytes(options.user.id) };
    if (options.excludeCredentials) asked.excludeCredentials = known(options.excludeCredentials);
    if (options.allowCredentials) asked.allowCredentials = known(options.allowCredentials);
    return asked;
  };

  const asSent = (credential) => {
    const { response } = credential;
    const sent = { clientDataJSON: text(response.clientDataJSON) };
    if (response.attestationObject) {
      sent.attestationObject = text(response.attestationObject);
      sent.transports = response.getTransports ? response.getTransports() : [];
    } else {
      sent.authenticatorData = text(response.authenticatorData);
      sent.signature = text(response.signature);
      if (response.userHandle) sent.userHandle = text(response.userHandle);
    }
    return JSON.stringify({ id: credential.id, rawId: text(credential.rawId), type: credential.type, response: sent });
  };

  const options = async (form) => {
    const answer = await fetch(form.dataset.options, {
      method: "POST",
      headers: { "X-Form-Token": form.elements.form_token.value, Accept: "application/json" },
    });
    const isData = (answer.headers.get("Content-Type") || "").startsWith("application/json");
    // Signed out, or a confirmation that ran out, meanwhile: the page itself, asked for anew, says so.
    if (!answer.ok || !isData) throw new Error(answer.status === 429 ? "fast" : "stale");
    return asAsked(await answer.json());
  };

  const wordFor = (error) => {
    if (error.name === "NotAllowedError" || error.name === "AbortError") return "stopped";
    if (error.name === "InvalidStateError") return "known";
    return error.message === "fast" || error.message === "stale" ? error.message : "failed";
  };

  for (const form of document.querySelectorAll("form[data-passkey]")) {
    const button = form.querySelector("button");
    const said = form.querySelector("[role='status']");
    const say = (word) => { said.textContent = said.dataset[word]; };
    if (!isThere) {
      button.disabled = true;
      say("none");
      continue;
    }
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      event.stopPropagation();
      if (button.getAttribute("aria-busy") === "true") return;
      button.setAttribute("aria-busy", "true");
      say("waiting");
      try {
        const asked = { publicKey: await options(form) };
        const answer = await (form.dataset.passkey === "create" ? navigator.credentials.create(asked) : navigator.credentials.get(asked));
        form.elements.credential.value = asSent(answer);
        form.submit();
      } catch (error) {
        say(wordFor(error));
        button.removeAttribute("aria-busy");
      }
    });
  }
})();
