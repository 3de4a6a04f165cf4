// Package inputs sends to a real `almanac up` what real programs send, and asks
// `almanac query` for every event.
//
// Recorded requests need no program. The others are skipped, by name, where they are
// absent: `make inputs` installs them by npm and apt, at the versions of
// clients/package.json and of the system.
package inputs
