// Package texts fills in the texts of labels and annotations, by the templates of Prometheus's alerting rules. It is pure.
//
// $value and $labels are those of an alert. Go's own functions are there, and of Prometheus's those that make a text of a
// number or a label. What asks for other series, repeats, or makes much text of little is refused by name.
package texts
