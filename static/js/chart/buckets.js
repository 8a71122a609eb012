// Labels of days, weeks and months.

// The first day of a bucket: "Nov 22", "Nov 22, 2026" or, for months, "Nov 2026".
export function bucketLabel(data, index, isLong) {
  if (!data.buckets[index]) return "";
  const day = new Date(`${data.buckets[index]}T00:00`);
  if (data.bucket === "month") return day.toLocaleDateString("en-US", { month: "short", year: "numeric" });
  const text = day.toLocaleDateString("en-US", { month: "short", day: "numeric", year: isLong ? "numeric" : undefined });
  return data.bucket === "week" && isLong ? `Week of ${text}` : text;
}
