package crosssite

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// pageTimeout ends a page that does not report its end. Alone it takes two seconds; the machine may be busy.
const pageTimeout = 3 * time.Minute

// flags start a chromium that shows one page and speaks to no other server. A script of a test may open windows.
var flags = []string{
	"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
	"--disable-component-update", "--disable-sync", "--disable-popup-blocking", "--disable-dev-shm-usage", "--mute-audio",
}

// Page is what a page did.
type Page struct {
	// Origin it was served from.
	Origin string
	// Results it reported, by name. A name that was reported twice has both, by lines.
	Results map[string]string
}

// Open serves a page with script from an origin of its own, shows it in chromium and waits until the script has ended.
func Open(t testing.TB, script string) Page {
	t.Helper()
	program := find()
	if program == "" {
		t.Skip("no chromium on PATH: install Debian's package chromium to try this from a page")
	}
	var (
		mu      sync.Mutex
		results = map[string]string{}
		done    = make(chan struct{})
		once    sync.Once
	)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(w, frame, script)
	})
	mux.HandleFunc("/report", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*") // a page that was navigated to may report as well
		body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		mu.Lock()
		defer mu.Unlock()
		name := r.URL.Query().Get("name")
		if old, ok := results[name]; ok {
			body = []byte(old + "\n" + string(body))
		}
		results[name] = string(body)
	})
	mux.HandleFunc("/end", func(http.ResponseWriter, *http.Request) { once.Do(func() { close(done) }) })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: pageTimeout}
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(l) }) // ends when it is closed
	defer running.Wait()
	defer func() { _ = server.Close() }()

	ctx, cancel := context.WithTimeout(t.Context(), pageTimeout)
	defer cancel()
	p := Page{Origin: "http://" + l.Addr().String()}
	cmd := exec.CommandContext(ctx, program, append(flags, "--user-data-dir="+t.TempDir(), "--remote-debugging-port=0", p.Origin+"/")...)
	var said strings.Builder
	cmd.Stderr = &said
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting chromium: %v", err)
	}
	ended := false
	select {
	case <-done:
		ended = true
	case <-ctx.Done():
	}
	cancel() // kills chromium; its children end with it
	_ = cmd.Wait()
	mu.Lock()
	defer mu.Unlock()
	p.Results = results
	if !ended {
		t.Fatalf("the page did not end within %s; it reported %v, chromium printed: %.2000s", pageTimeout, results, said.String())
	}
	return p
}

// find is the path of a chromium, or "".
func find() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// frame is the page. settle waits until what it is given has ended in any way, some seconds at most.
const frame = `<!doctype html><meta charset="utf-8"><title>a page</title><body><script>
const reportURL = location.origin + '/report';
const report = (name, value) => fetch(reportURL + '?name=' + encodeURIComponent(name), {method: 'POST', body: String(value)});
const settle = p => Promise.race([p, new Promise(r => setTimeout(r, 5000, 'no end'))]).catch(e => 'error ' + e);
(async () => {
  try {
    %s
  } catch (e) { await report('exception', e); }
  await fetch('/end', {method: 'POST'});
})();
</script>`

// Request is what a page tries to send.
type Request struct {
	// URL, with its query.
	URL string
	// Body of a POST by fetch, and by a form, whose only field it is.
	Body string
}

// Ways is a script that sends each request by fetch (simple, with credentials, with headers of its own), as an image and
// a script, by a form into a frame, and by navigations of a frame and a window. It reports under the name of the way
// what it could read.
func Ways(requests ...Request) string {
	list, _ := json.Marshal(requests) // strings alone
	return fmt.Sprintf(ways, list)
}

const ways = `
for (const [i, r] of (%s).entries()) {
  const read = async (way, options) => report(way + ' ' + i, await settle(fetch(r.URL, options).then(async a =>
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
  })).then(v => report(way + ' ' + i, v));
  await element('image', 'img');
  await element('script', 'script');
  const frame = name => { const f = document.createElement('iframe'); f.name = name; document.body.append(f); return f; };
  const inside = (f, start) => settle(new Promise(done => { f.onload = () => { let v; try { v = 'read ' + f.contentDocument.body.innerText } catch (e) { v = 'kept' } done(v) }; start(); }));
  const f = frame('f' + i), g = frame('g' + i);
  await report('navigation of a frame ' + i, await inside(f, () => { f.src = r.URL }));
  const form = document.createElement('form');
  form.method = 'POST'; form.enctype = 'text/plain'; form.target = g.name; form.action = r.URL;
  const field = document.createElement('input'); field.name = r.Body; field.value = ''; form.append(field); document.body.append(form);
  await report('form ' + i, await inside(g, () => form.submit()));
  const w = open(r.URL);
  await new Promise(done => setTimeout(done, 500));
  let v; try { v = 'read ' + w.document.body.innerText } catch (e) { v = 'kept' }
  await report('navigation of a window ' + i, v);
}
`
