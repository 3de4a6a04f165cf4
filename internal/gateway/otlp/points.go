package otlp

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

const (
	// maxPointBytes bounds what the events of one request's data points hold together: each
	// has the attributes of its resource and scope again.
	maxPointBytes = 64 << 20
	// attrBytes is what an attribute holds besides its texts.
	attrBytes = 64
)

// exportMetrics takes the data points of a request and returns when they are stored. Without a
// key a request that is sent again is stored again, and its points count once.
func (in *Input) exportMetrics(ctx context.Context, req *pool.Request, topic, key string, body []byte, isJSON bool) ([]byte, error) {
	if key != "" {
		req.Key(ownKey(ctx, key))
	}
	to, err := req.To(ctx, topic)
	if err != nil {
		return nil, err
	}
	if t := to.Topic(); t.Kind != kinds.Metric {
		return nil, request.Refuse(http.StatusBadRequest, "wrong_kind", fmt.Sprintf("topic %q is of kind %s; metrics go to topics of kind %s", t.Name, t.Kind, kinds.Metric),
			"declare one with `"+kinds.Metric.Declare("NAME")+"`, and name it by the header "+TopicKey+" or by /t/NAME/v1/metrics")
	}
	points, rejected, first, held := 0, 0, error(nil), 0
	count := func(err error) {
		points++
		if err != nil {
			if rejected++; first == nil {
				first = err
			}
		}
	}
	holding := request.Holding{Request: req}
	hold := func(n int) error { return holding.Add(ctx, n) }
	var k *known
	if key == "" { // a key is of a request's events
		k = &known{to: to, each: count, hold: hold}
	}
	did, err := decodeMetrics(body, isJSON, to.Topic(), k, func(events []schemas.Event, err error) error {
		if err != nil {
			to.Refuse(err)
		}
		for i := 0; i < len(events) && err == nil; i++ {
			n := events[i].Bytes() + attrBytes*len(events[i].Attrs)
			if held += n; held > maxPointBytes {
				return fmt.Errorf("%w: with their labels they have more than %d MiB; send fewer at once", ErrManyPoints, maxPointBytes>>20)
			}
			if err := hold(n); err != nil {
				return err
			}
			err = to.Add(events[i])
		}
		count(err)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := holding.End(ctx); err != nil {
		return nil, err
	}
	repeated, err := req.Store(ctx)
	if err != nil {
		return nil, err
	}
	resp := pmetricotlp.NewExportResponse()
	if since := req.Erased(); rejected == 0 && len(since) > 0 {
		resp.PartialSuccess().SetErrorMessage(fmt.Sprintf("this request was stored before; what the erasure %s may have taken of it since is not stored again: send it with another Idempotency-Key to store it again", strings.Join(since, ", ")))
	} else if rejected > 0 {
		resp.PartialSuccess().SetRejectedDataPoints(int64(rejected))
		resp.PartialSuccess().SetErrorMessage(fmt.Sprintf("%d of %d data points are refused; the first: %v", rejected, points, first))
	} else if repeated {
		resp.PartialSuccess().SetErrorMessage("this request was stored before and is counted once")
	} else if said := did.said(); said != "" {
		resp.PartialSuccess().SetErrorMessage(said)
	}
	return encode(resp, resp.PartialSuccess().ErrorMessage() != "", isJSON)
}

// said is what was changed, in words; empty: nothing.
func (c changed) said() string {
	var all []string
	if c.rounded > 0 {
		all = append(all, fmt.Sprintf("the whole numbers of %d data points lie above 2^53 and are rounded to the nearest float64", c.rounded))
	}
	if c.exemplars > 0 {
		all = append(all, fmt.Sprintf("%d exemplars have a trace or span id that is none and are left out", c.exemplars))
	}
	return strings.Join(all, "; ")
}
