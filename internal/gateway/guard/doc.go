// Package guard is what every HTTP request passes first, on each listener that speaks HTTP.
//
// # Model
//
// A program on this machine may ask anything: the listeners have no accounts. A page that a browser
// shows may not, unless this very origin served it. Decide tells them apart, by what
// browsers say of a request and pages cannot change:
//
//	a name for loopback that is not loopback's      421: a name elsewhere was made to mean 127.0.0.1
//	a name that may be another's, and no token  421: where none is asked, over plain text (insecure: no-auth)
//	health, version, specification                  pass: they cost nothing and tell nothing
//	Sec-Fetch-Mode: navigate                        403: a link, a redirect, a form or a frame
//	Sec-Fetch-Site: cross-site, same-site           403: an image, a script, a fetch of another origin
//	Sec-Fetch-Site: same-origin, none               pass
//	Origin, else Referer, of another host           403: browsers that do not send Sec-Fetch-Site
//	none of these, from a browser, and no token     403: an image without a referer, where none is asked over plain text
//	none of these                                   pass: a program
//
// A navigation is refused wherever it came from, the address bar among them: a browser does not
// tell a page's own redirect from a link in another program. A page that is served here
// itself gets its path into open, and a policy of its own.
//
// # What an answer says
//
// Each answer has headers by which a browser shows no part of it, runs nothing of it and gives it
// to no other origin, whatever it contains. They hold where a browser is too old to say
// anything of its requests.
//
// # Failures
//
// A panic of a handler ends its request with 500, and is reported with its stack.
package guard
