// Package deploy holds what installs and watches Almanac elsewhere: helm/almanac, a chart for Kubernetes; prometheus,
// alerts and the configuration of docker-compose.yml; grafana, a dashboard and where Grafana finds it.
//
// It is a module of its own, for its tests render the chart with helm's engine and read the result into the types of
// Kubernetes, and Almanac itself needs neither. What they render lies in helm/rendered.
package deploy
