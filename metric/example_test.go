package metric_test

import (
	"context"
	"fmt"
	"math"

	"github.com/almanac-events/almanac/metric"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// A value that no chart could show is refused where it is made.
func ExamplePoint_Event() {
	for _, value := range []float64{0.42, math.NaN()} {
		e, err := metric.Point{Name: "cpu", Value: value, Points: metric.Gauge}.Event()
		fmt.Println(len(e.Attrs), "attributes,", err)
	}
	// Output:
	// 2 attributes, <nil>
	// 0 attributes, metric: bad value: value is NaN, it must be a finite number
}

// A buffer that is used again makes points without an allocation.
func ExampleBuffer_Event() {
	ctx := context.Background()
	servers := producer.NewMemory(schemas.NewTopicOf(schemas.KindMetric, "cpu"))
	p, err := servers.Producer(producer.Config{Topic: "cpu"})
	if err != nil {
		fmt.Println(err)
		return
	}
	var buf metric.Buffer
	for _, host := range []string{"a", "b"} {
		e, err := buf.Event(metric.Point{Name: "cpu", Value: 0.42, Unit: "1", Points: metric.Gauge, Labels: []schemas.Attr{schemas.String("host", host)}})
		if err != nil {
			fmt.Println(err)
			continue
		}
		p.Log(e)
	}
	fmt.Println(p.Close(ctx)) // flushes
	fmt.Println(len(servers.Events()), "points")
	// Output:
	// <nil>
	// 2 points
}

// A distribution stands for many values.
func ExampleDistribution() {
	d := metric.Distribution{Count: 3, Sum: 6, Min: 1, Max: 3, M2: 2, Buckets: `{"bounds":[2],"counts":[2,1]}`}
	e, err := metric.Point{Name: "latency", Service: "api", Distribution: &d}.Event()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(e.Type, e.Service)
	for _, a := range e.Attrs {
		fmt.Println(a.Key, a.Text())
	}
	// Output:
	// latency api
	// count 3
	// sum 6
	// min 1
	// max 3
	// m2 2
	// buckets {"bounds":[2],"counts":[2,1]}
}
