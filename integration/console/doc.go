// Package console shows the page to a real browser: a built almanac up, Debian's chromium without a window, and a
// person's ways, by the roles and names of what is on the page.
//
// # Model
//
// The test starts Almanac and runs drive.mjs, and then each drive-*.mjs, which have playwright-core of the page's own
// packages. Each scenario there is a subtest here. What they share is in page.mjs. Events come by the API, as a client
// sends them. A scenario waits for what it expects to see, and for no time. All scripts have the same Almanac, so one
// that is not the first has a topic of its own. away.mjs alone has another one, which it stops and starts itself; three
// seconds are those of the page's own clock, which the script moves.
//
// pages.mjs is every page in the state in which a person would look at it. drive-themes.mjs has axe-core look at each, and
// shots.mjs writes pictures of them for people.
//
// After the last scenario of a script the requests of all are looked at. They went to the page's origin alone. No script
// failed, and nothing broke the page's policy.
//
// # Failures
//
// Without chromium, Node.js or the built page the test is skipped, and says which it lacks.
package console
