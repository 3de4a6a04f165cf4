// Package metric makes events of topics of kind metric: points of time series.
//
// # Model
//
// A Point is the value of a series at an instant. Name, service, tenant, unit and labels
// together are the series. Of points of one series and one instant the last one that was made
// counts. So a sender that does not know whether a point arrived sends it again, and one that
// corrects a point sends the new value under the same time.
//
//	e, err := metric.Point{Name: "cpu", Value: 0.42, Unit: "1", Points: metric.Gauge, Labels: labels}.Event()
//	if err != nil {
//		return err
//	}
//	p.Log(e)
//
// A Buffer makes events without an allocation.
//
// A Distribution stands for many values: their count, sum, least and greatest, the sum of their
// squared deviations from the mean, and a histogram.
//
// # Failures
//
// Event refuses a point without a name, with a value that is not finite, with a start after its
// time, with a label given twice, or with buckets that do not add up to its count. The producer
// checks its size and time, and what the topic declares.
package metric
