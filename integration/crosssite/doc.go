// Package crosssite shows a page in Debian's chromium, to see what a page that a person merely visits can do to the ports
// of an Almanac.
//
// # Model
//
//	page := crosssite.Open(t, script)      serves an evil page from an origin of its own, runs script in it, waits
//	page.Results                         what the script passed to report(name, value)
//	crosssite.Ways(url, body)              scripts that try one request by fetch, image, form and navigation
//
// The page is served from 127.0.0.1 on a free port, which is another origin than every port of an Almanac. script is
// JavaScript; `await` works in it. report sends a result to the page's own server, and what came with it is a string.
// A navigation or a form leaves the page: such a script opens a frame, a window or itself, and what that page runs
// reports to the same server, at the address in `reportURL`.
//
// # Who is authoritative
//
// The servers under attack: a test asks them what they have and did. A page reports only what it believes.
//
// # Failures
//
// Without a chromium on PATH, Open skips the test and says what to install. A page that does not end within its time
// fails the test with what chromium printed. Each page has a profile of its own, which is removed.
package crosssite
