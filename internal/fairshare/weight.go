package fairshare

// TemporalWeight converts a queue's weight to a fairness weight of Temporal, 0.001 to
// 10 of the allowed 0.001 to 1000. Only ratios matter. For each task, Temporal advances
// the key by 1000/weight, rounded down to an integer: a weight of 30 would advance it by
// 33 and one of 700 by 1, which distorts the ratio. A hundredth of these weights advances
// it by 3333 and 142.
func TemporalWeight(weight float64) float64 { return weight / 100 }
