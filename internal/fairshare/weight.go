package fairshare

// TemporalWeight converts a queue's weight to the fairness weight that Temporal gets,
// 0.001 to 10. Only ratios count, and Temporal advances a key by 1000/weight, as a
// whole number, for each of its tasks: a weight of 30 would advance it by 33 and one
// of 700 by 1, which is several per cent off. A hundredth of them advances it by 3333
// and 142. Temporal takes 0.001 to 1000.
func TemporalWeight(weight float64) float64 { return weight / 100 }
