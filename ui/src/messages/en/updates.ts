/** Updates of the program. */
export const updates = {
  "updates.none":
    "Foretoken {version}. There is no update server yet, so this version can't check for updates.",
  "updates.unchecked": "Foretoken {version}",
  "updates.checking": "Checking for updates…",
  "updates.up_to_date": "Foretoken {version} is up to date.",
  "updates.found": "Foretoken {version} is available. You have {current}.",
  "updates.downloading": "Downloading Foretoken {version}…",
  "updates.ready": "Foretoken {version} is downloaded, and its signature is verified.",
  "updates.installing": "Installing Foretoken {version}…",
  "updates.elsewhere": "Install it the way you installed this version.",
  "updates.notes": "New in {version}",
  "updates.available": "Foretoken {version} is available",
  "updates.show": "Show",
  "updates.check": "Check now",
  "updates.download": "Download",
  "updates.install": "Install and restart",
  "updates.problem.unreachable":
    "The update server can't be reached. Check your internet connection.",
  "updates.problem.connection_lost": "The connection to the update server was lost.",
  "updates.problem.bad_response": "The update server's response can't be read.",
  "updates.problem.too_large": "The update server sent too much data, so the transfer was stopped.",
  "updates.problem.no_package": "This version has no package for your system.",
  "updates.problem.bad_signature":
    "The download was discarded: it lacks Foretoken's signature for this version.",
  "updates.problem.not_installed":
    "The update could not be installed, so this version stays. The log has the reason.",
} as const;
