package usage

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/schemas"
)

// Pages have the bills of a report, each once and in its order, whatever they are for and wherever they come from.
func TestPagesOfBills(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var rows []row
	for i := range 60 {
		month, day := 2+i%2, 1+i%9
		space := fmt.Sprintf("s%d", i%7)
		if i%7 == 3 {
			space = "it's\ta \\ space" // as no name needs to be, and any may
		}
		rows = append(rows, row{
			meter: fmt.Sprint("m", i%2), provider: fmt.Sprint("p", i%3), space: space, customer: fmt.Sprint("c", i%4), cause: fmt.Sprint("cause", i),
			delta: int64(i), ms: at(t, fmt.Sprintf("2026-%02d-%02dT10:00:00Z", month, day)).UnixMilli(), shard: uint64(i % 3),
		})
	}
	in(&r.Topic, rows)
	r.insert(rows...)
	for name, change := range map[string]func(*Request){
		"total": func(q *Request) { q.Meter = "m1" }, "by space": func(q *Request) { q.GroupBy = BySpace }, "by customer": func(q *Request) { q.GroupBy = ByCustomer },
		"by customer and space": func(q *Request) { q.GroupBy = "customer,space" }, "by provider": func(q *Request) { q.GroupBy = ByProvider },
		"by meter": func(q *Request) { q.GroupBy = ByMeter }, "by day": func(q *Request) { q.GroupBy, q.Meter = ByDay, "m0" },
		"of one space": func(q *Request) { q.GroupBy, q.Space = BySpaceAndCustomer, "s1" }, "by cause": func(q *Request) { q.GroupBy, q.ByCause = BySpaceAndCustomer, true },
	} {
		for _, when := range []string{"before", "after"} {
			req := Request{Topic: "usage", From: at(t, "2026-02-01T00:00:00Z"), To: at(t, "2026-03-08T00:00:00Z")}
			change(&req)
			want := r.report(req).Bills
			var got []Bill
			limit := len(want)/3 + 1
			for cursor, pages := "", 0; ; pages++ {
				page, err := r.read.Page(t.Context(), req, limit, cursor)
				if err != nil {
					t.Fatal(name, err)
				}
				if len(page.Bills) > limit || pages > len(want) {
					t.Fatalf("%s: page %d has %d bills", name, pages, len(page.Bills))
				}
				got = append(got, page.Bills...)
				if cursor = page.Cursor; cursor == "" {
					break
				}
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s, %s the sums: pages have\n%v\nwant\n%v", name, when, got, want)
			}
			if when == "before" {
				r.derive()
			}
		}
	}
	sizesOfPages(t, r)
	refusedPages(t, r)
}

func sizesOfPages(t *testing.T, r *rig) {
	t.Helper()
	q := SizeRequest{Topic: "usage", At: at(t, "2026-03-05T12:00:00Z"), GroupBy: BySpace}
	var got string
	for cursor := ""; ; {
		sizes, next, err := r.read.SizesPage(t.Context(), q, 4, cursor)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sizes {
			got += fmt.Sprintf("%s %s %d %d; ", s.Space, s.Size, s.Causes, s.Repeats)
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	if want := r.sizes(q); got != want {
		t.Errorf("pages of sizes have %s, want %s", got, want)
	}
}

// A cursor that is of other bills would leave some out.
func refusedPages(t *testing.T, r *rig) {
	t.Helper()
	req := Request{Topic: "usage", From: at(t, "2026-02-01T00:00:00Z"), To: at(t, "2026-03-08T00:00:00Z"), GroupBy: BySpace}
	page, err := r.read.Page(t.Context(), req, 1, "")
	if err != nil || page.Cursor == "" {
		t.Fatal(page, err)
	}
	other := req
	other.GroupBy = ByCustomer
	for name, c := range map[string]struct {
		req    Request
		limit  int
		cursor string
	}{
		"another group": {other, 1, page.Cursor}, "no cursor": {req, 1, "~"}, "no list": {req, 1, "e30"}, "cut": {req, 1, page.Cursor[:len(page.Cursor)-4]},
		"too many": {req, MaxPage + 1, ""}, "below none": {req, -1, ""},
	} {
		if _, err := r.read.Page(t.Context(), c.req, c.limit, c.cursor); !errors.Is(err, schemas.ErrRequest) {
			t.Errorf("%s: %v, want a request that is refused", name, err)
		}
	}
}

// A page of long texts ends by its bytes.
func TestAPageOfLongTexts(t *testing.T) {
	t.Parallel()
	b := Bill{Meter: "m", Space: "s", SizeStart: "0", SizeEnd: "1", Usage: strings.Repeat("2", 1<<20)}
	req := &Request{GroupBy: BySpace}
	page := newPage(req, MaxPage)
	var err error
	n := 0
	for err == nil {
		err = page.add(b)
		n++
	}
	if !errors.Is(err, errPageFull) || len(page.rep.Bills) != 7 || n != 8 || page.rep.Cursor == "" {
		t.Errorf("%d bills of a MiB: %v", len(page.rep.Bills), err)
	}
	place, err := decodeBillPlace(page.rep.Cursor, req)
	if err != nil || place.keys[2] != b.Space {
		t.Error(err)
	}
	// One that is longer than a page is a page.
	b.Usage = strings.Repeat("2", maxPageBytes+1)
	if page = newPage(req, MaxPage); page.add(b) != nil || !errors.Is(page.add(b), errPageFull) {
		t.Error("a long bill is not a page")
	}
}

// A page ends with a bill that the next can go on behind: names that are not UTF-8, or as long as an address, are in the next one.
func TestWhereAPageEnds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("s", maxPlaceBytes)
	for name, c := range map[string]struct {
		spaces []string
		kept   int // 0: refused
	}{
		"names":             {[]string{"a", "b"}, 2},
		"bytes last":        {[]string{"a", "b", "\uFFFDC"}, 2},
		"bytes first":       {[]string{"\uFFFD", "b"}, 2},
		"bytes alone":       {[]string{"\uFFFD", "caf\uFFFD"}, 0},
		"a long one last":   {[]string{"a", long}, 1},
		"a long one alone":  {[]string{long}, 0},
		"bytes, then long":  {[]string{"a", "\uFFFD", long}, 1},
		"an empty one last": {[]string{"a", ""}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := &Request{GroupBy: BySpace}
			page := newPage(req, len(c.spaces))
			for _, space := range c.spaces {
				if err := page.add(Bill{Space: space}); err != nil {
					t.Fatal(err)
				}
			}
			err := page.add(Bill{Space: "z"})
			if c.kept == 0 {
				if !errors.Is(err, schemas.ErrRequest) {
					t.Errorf("%v, want a request that is refused", err)
				}
				return
			}
			place, wrong := decodeBillPlace(page.rep.Cursor, req)
			if !errors.Is(err, errPageFull) || wrong != nil || len(page.rep.Bills) != c.kept || place.keys[2] != c.spaces[c.kept-1] {
				t.Errorf("%d bills, %v, %v", len(page.rep.Bills), err, wrong)
			}
		})
	}
}
