// Package browser shows a page to a real browser, for tests of what a page can do to Almanac.
//
// # Model
//
// A Site serves pages of a test under a name that is not this machine's, evil.example. Visit has Debian's
// chromium, without a window, go to one of them; the page calls report(text) for what it
// could do, and done() at its end. Visit returns the reports.
//
//	site := browser.NewSite(t)
//	reports := site.Visit("<script>…; report('read'); done()</script>")
//
// Ways is a page that tries some requests by everything a page has: fetch, image, script, form, navigation.
//
// The page may be counted as one of the internet (Public): chromium then keeps its requests, but not its
// navigations, from addresses of this machine.
//
// # Failures
//
// Where there is no chromium the test is skipped with a message: apt-get install chromium.
package browser
