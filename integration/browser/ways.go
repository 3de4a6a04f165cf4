package browser

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Request is what a page tries to send.
type Request struct {
	// URL, with its query.
	URL string
	// Body of a POST by fetch, and by a form, whose only field it is.
	Body string
}

// Ways is a page that sends each request by fetch (simple, with credentials, with headers of its own), as an image and
// a script, by a form into a frame, and by navigations of a frame and a window. It reports under the name of the way
// what it could read: see Results.
func Ways(requests ...Request) string {
	list, _ := json.Marshal(requests) // strings alone
	return fmt.Sprintf(ways, list)
}

// Results are what such a page reported, by the name of the way and the request's number.
func Results(reports []string) map[string]string {
	out := map[string]string{}
	for _, r := range reports {
		name, value, _ := strings.Cut(r, "\n")
		out[name] = value
	}
	return out
}

// ways is the page of these. Its settle waits until what it is given has ended in any way, some seconds at most.
const ways = `<body><script>
const settle = p => Promise.race([p, new Promise(r => setTimeout(r, 5000, 'no end'))]).catch(e => 'error ' + e);
const tell = (name, value) => report(name + '\n' + value);
(async () => { try {
for (const [i, r] of (%s).entries()) {
  const read = async (way, options) => tell(way + ' ' + i, await settle(fetch(r.URL, options).then(async a =>
    a.type === 'opaque' ? 'opaque' : 'read ' + a.status + ' ' + await a.text())));
  await read('fetch get', {});
  await read('fetch get no-cors', {mode: 'no-cors', credentials: 'include'});
  await read('fetch post', {method: 'POST', headers: {'content-type': 'text/plain'}, body: r.Body});
  await read('fetch post no-cors', {method: 'POST', mode: 'no-cors', body: r.Body});
  await read('fetch headers', {method: 'POST', headers: {'X-ClickHouse-User': 'reader', 'Authorization': 'Basic cmVhZGVyOg=='}, body: r.Body});
  const element = (way, name) => settle(new Promise(done => {
    const e = document.createElement(name);
    e.onload = () => done('loaded'); e.onerror = () => done('failed'); e.src = r.URL;
    document.body.append(e);
  })).then(v => tell(way + ' ' + i, v));
  await element('image', 'img');
  await element('script', 'script');
  const frame = name => { const f = document.createElement('iframe'); f.name = name; document.body.append(f); return f; };
  const inside = (f, start) => settle(new Promise(done => { f.onload = () => { let v; try { v = 'read ' + f.contentDocument.body.innerText } catch (e) { v = 'kept' } done(v) }; start(); }));
  const f = frame('f' + i), g = frame('g' + i);
  await tell('navigation of a frame ' + i, await inside(f, () => { f.src = r.URL }));
  const form = document.createElement('form');
  form.method = 'POST'; form.enctype = 'text/plain'; form.target = g.name; form.action = r.URL;
  const field = document.createElement('input'); field.name = r.Body; field.value = ''; form.append(field); document.body.append(form);
  await tell('form ' + i, await inside(g, () => form.submit()));
  const w = open(r.URL);
  const there = () => { try { return w.document.URL !== 'about:blank' } catch (e) { return true } }; // another origin's cannot be read
  for (let n = 0; n < 200 && w && !there(); n++) await wait(100);
  let v; try { v = 'read ' + w.document.body.innerText } catch (e) { v = 'kept' }
  await tell('navigation of a window ' + i, v);
}
} catch (e) { await tell('exception', e) }
await done() })()
</script>`
