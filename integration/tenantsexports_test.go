package integration

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// exported are the columns of an export by CSV, each of which differs between the tenants or is a place.
const exported = "ts,level,service,user_id,message,plan,size,attributes"

// exports reads all of app as NDJSON and as CSV, page by page: by the token of the first tenant it is what a token without a limit
// reads of the first tenant's own topic.
func (a *asking) exports() {
	a.t.Helper()
	for _, filter := range []string{"", "attributes.tenant = 'b' OR attributes.tenant = 'a'", "level = 'error'", "plan != ''"} {
		for _, order := range []string{"asc", "desc"} {
			q := url.Values{"limit": {"50"}, "order": {order}, "fields": {exported}}
			if filter != "" {
				q.Set("where", filter)
			}
			for media, rows := range map[string]func(string) []string{"application/x-ndjson": a.linesOf, "text/csv": a.recordsOf} {
				own, alone := a.export("app", a.own, media, q, rows), a.export("appalone", a.all, media, q, rows)
				if diff := cmp.Diff(alone, own); diff != "" {
					a.t.Errorf("%s of %v is otherwise than without the other tenant: %s", media, q, diff)
				}
				if len(own) == 0 {
					a.t.Errorf("%s of %v is empty", media, q)
				}
				if every := a.export("app", a.all, media, q, rows); len(every) <= len(own) || !strings.Contains(strings.Join(every, "\n"), otherWord) {
					a.t.Errorf("%s of %v has %d rows of both tenants, and %d of the first", media, q, len(every), len(own))
				}
			}
		}
	}
}

// export reads an export to its end.
func (a *asking) export(topic, secret, media string, q url.Values, rows func(string) []string) (all []string) {
	a.t.Helper()
	for cursor := ""; ; {
		q := url.Values(http.Header(q).Clone())
		if cursor != "" {
			q.Set("cursor", cursor)
		}
		req, err := http.NewRequestWithContext(a.t.Context(), http.MethodGet, a.base+"/v1/topics/"+topic+"/events?"+q.Encode(), nil)
		if err != nil {
			a.t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+secret)
		req.Header.Set("Accept", media)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			a.t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		text := string(body)
		if err != nil || resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), media) {
			a.t.Fatalf("%s of %s?%s: %s %s %.500s %v", media, topic, q.Encode(), resp.Status, resp.Header.Get("Content-Type"), text, err)
		}
		if whole := strings.ToLower(text + fmt.Sprint(resp.Header)); secret == a.own && strings.Contains(whole, otherWord) {
			a.t.Errorf("%s of %s?%s shows the other tenant's rows: %.2000s", media, topic, q.Encode(), whole)
		}
		all = append(all, rows(text)...)
		if cursor = resp.Header.Get("Almanac-Cursor"); cursor == "" {
			return all
		}
		if len(all) > 10*a.sent {
			a.t.Fatalf("%s of %s?%s has no end", media, topic, q.Encode())
		}
	}
}

// linesOf are the events of a page, without places.
func (a *asking) linesOf(text string) (rows []string) {
	for line := range strings.Lines(text) {
		back, err := json.Marshal(plain(a.t, line))
		if err != nil {
			a.t.Fatal(err)
		}
		rows = append(rows, string(back))
	}
	return rows
}

// recordsOf are the rows of a page, without its head.
func (a *asking) recordsOf(text string) (rows []string) {
	records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(records) == 0 || !slices.Equal(records[0], strings.Split(exported, ",")) {
		a.t.Fatalf("%v: %.500s", err, text)
	}
	for _, r := range records[1:] {
		rows = append(rows, strings.Join(r, "\x1f"))
	}
	return rows
}
