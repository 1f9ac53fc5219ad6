ARRIVALS = "ship STRING, gate STRING, minutes_late INT"
GATE = "gate"
