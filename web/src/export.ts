/** What leaves the page when a reader asks for it: tables as CSV, charts as SVG and PNG, text to the clipboard. Nothing goes over a network. */

/** One cell. Text that a spreadsheet would take for a formula gets an apostrophe in front: names in a run are a stranger's. */
export function csvCell(value: string | number | null): string {
  if (value === null || (typeof value === "number" && !Number.isFinite(value))) return "";
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

export function csvText(head: string[], rows: (string | number | null)[][]): string {
  return [head, ...rows].map(row => row.map(csvCell).join(",")).join("\r\n") + "\r\n";
}

export function download(name: string, content: Blob) {
  const address = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = address;
  link.download = name.replace(/[^\w.-]+/g, "-").slice(-80);
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // without the right to the clipboard: as browsers did it before
    const box = document.createElement("textarea");
    box.value = text;
    box.setAttribute("readonly", "");
    box.style.position = "fixed";
    box.style.top = "-100px";
    document.body.append(box);
    box.select();
    let done = false;
    try {
      done = document.execCommand("copy");
    } catch {
      done = false;
    }
    box.remove();
    return done;
  }
}

const kKept = ["fill", "stroke", "fill-opacity", "stroke-opacity", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-weight", "font-family", "text-anchor"];

/** An SVG of the page as a file of its own: the colours of the theme that is on, written out. */
export function svgText(svg: SVGSVGElement): string {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const from = [svg, ...svg.querySelectorAll<SVGElement>("*")];
  const to = [copy, ...copy.querySelectorAll<SVGElement>("*")];
  from.forEach((element, i) => {
    const style = getComputedStyle(element);
    to[i].removeAttribute("class");
    to[i].removeAttribute("style");
    for (const name of kKept) {
      if (name.startsWith("font") && element.tagName !== "text") continue;
      if (name === "text-anchor" && element.tagName !== "text") continue;
      const value = style.getPropertyValue(name);
      const plain = value === "" || value === "none" && name === "stroke-dasharray" || value === "1" && name.endsWith("opacity");
      if (!plain && !value.startsWith("url(")) to[i].setAttribute(name, value.replace(/"/g, "'"));
    }
  });
  const box = svg.viewBox.baseVal;
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", String(box.width));
  copy.setAttribute("height", String(box.height));
  const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  ground.setAttribute("width", String(box.width));
  ground.setAttribute("height", String(box.height));
  ground.setAttribute("fill", getComputedStyle(document.documentElement).getPropertyValue("--surface").trim());
  copy.prepend(ground);
  return new XMLSerializer().serializeToString(copy);
}

export function saveSvg(svg: SVGSVGElement, name: string) {
  download(`${name}.svg`, new Blob([svgText(svg)], {type: "image/svg+xml"}));
}

/** The same as pixels, two for each unit. */
export async function savePng(svg: SVGSVGElement, name: string): Promise<void> {
  const box = svg.viewBox.baseVal;
  const picture = new Image();
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText(svg))}`;
  await picture.decode();
  const canvas = document.createElement("canvas");
  canvas.width = box.width * 2;
  canvas.height = box.height * 2;
  canvas.getContext("2d")!.drawImage(picture, 0, 0, canvas.width, canvas.height);
  const pixels = await new Promise<Blob | null>(done => canvas.toBlob(done, "image/png"));
  if (pixels) download(`${name}.png`, pixels);
}
