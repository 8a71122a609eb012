// Axes and labels of days, weeks and months.

import { axisStyle, sizeOfLabels } from "./axes.js";

const dayOf = (text) => new Date(`${text}T00:00`);

// Whether the same day of a year can occur twice.
const isOverAYear = ({ buckets }) => dayOf(buckets.at(-1)) - dayOf(buckets[0]) > 360 * 86_400_000;

// The first day of a bucket: "Nov 22", "Nov 22, 2026" or, for months, "Nov 2026".
export function bucketLabel(data, index, isLong) {
  if (!data.buckets[index]) return "";
  const day = dayOf(data.buckets[index]);
  if (data.bucket === "month") return day.toLocaleDateString("en-US", { month: "short", year: "numeric" });
  const year = isLong || isOverAYear(data) ? "numeric" : undefined;
  const text = day.toLocaleDateString("en-US", { month: "short", day: "numeric", year });
  return data.bucket === "week" && isLong ? `Week of ${text}` : text;
}

export const bucketScales = (data, most) => ({ x: { time: false, range: [-0.6, data.buckets.length - 0.4] }, y: { range: [0, most * 1.06] } });

// The axes of the buckets and the values. `format` labels a tick of the values, given the step between ticks.
export function bucketAxes(data, text, line, label, format) {
  const axis = axisStyle(text, line);
  const name = data.bucket[0].toUpperCase() + data.bucket.slice(1);
  return [
    { ...axis, grid: { show: false }, label: name, labelSize: 18, size: 32, incrs: [1, 2, 5, 7, 10, 14, 30, 60, 90, 180, 365, 730, 1830], space: isOverAYear(data) ? 96 : 76, values: (_plot, ticks) => ticks.map((at) => bucketLabel(data, at, false)) },
    { ...axis, label, labelSize: 18, size: sizeOfLabels, values: (_plot, ticks, _axis, _space, step) => ticks.map((value) => format(value, step)) },
  ];
}
