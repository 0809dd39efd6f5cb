// A page as a picture with highlights, or a stretch of text with marks. Foreign text is set as
// text, never as HTML. Arrow keys turn pages while the view has the focus.

const element = (name, className, text) => {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
};

const percent = (share) => `${(100 * share).toFixed(3)}%`;

function picture({ sheet, zoom, name }) {
  const page = element("div", "page");
  page.style.width = `${zoom}%`;
  const image = element("img");
  image.alt = name;
  image.src = `data:image/png;base64,${sheet.png}`;
  image.style.aspectRatio = `${sheet.width} / ${sheet.height}`;
  page.append(image);
  for (const [left, top, right, bottom] of sheet.highlights) {
    const box = element("div", "highlight");
    box.style.left = percent(left);
    box.style.top = percent(top);
    box.style.width = percent(right - left);
    box.style.height = percent(bottom - top);
    page.append(box);
  }
  return page;
}

function writing({ paragraphs, zoom }) {
  const text = element("div", "text");
  text.style.fontSize = `${zoom}%`;
  for (const { level, runs } of paragraphs) {
    const block = element(level ? "h4" : "p");
    block.dir = "auto";
    for (const [words, isMarked] of runs) {
      block.append(isMarked ? element("mark", "highlight", words) : words);
    }
    text.append(block);
  }
  return text;
}

function strip(thumbnails, part, go) {
  const list = element("div", "thumbnails");
  list.setAttribute("role", "group");
  list.setAttribute("aria-label", "Pages nearby");
  for (const { number, png } of thumbnails) {
    const button = element("button", "thumbnail");
    button.type = "button";
    button.setAttribute("aria-label", `Page ${number}`);
    if (number === part + 1) button.setAttribute("aria-current", "page");
    const image = element("img");
    image.alt = "";
    image.src = `data:image/png;base64,${png}`;
    button.append(image, element("span", "", String(number)));
    button.onclick = () => go(number - 1);
    list.append(button);
  }
  return list;
}

export default function ({ data, parentElement, setTriggerValue }) {
  const go = (part) => {
    if (part >= 0 && part < data.total && part !== data.part) setTriggerValue("turned", part);
  };
  let view = parentElement.querySelector(".view");
  const isNew = !view || view.dataset.token !== data.token;
  const kept = view && !isNew ? [view.scrollLeft, view.scrollTop] : null;
  const hadFocus = Boolean(view && view.contains(parentElement.activeElement ?? null));
  for (const old of [...parentElement.querySelectorAll(".view, .thumbnails")]) old.remove();

  view = element("div", "view");
  view.tabIndex = 0;
  view.dataset.token = data.token;
  view.setAttribute("role", "region");
  view.setAttribute("aria-label", data.name);
  view.append(data.sheet ? picture(data) : writing(data));
  view.onkeydown = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, PageDown: 1, PageUp: -1 }[event.key];
    if (step && !event.ctrlKey && !event.altKey && !event.metaKey) {
      event.preventDefault();
      go(data.part + step);
    }
  };
  if (data.thumbnails.length) parentElement.append(strip(data.thumbnails, data.part, go));
  parentElement.append(view);
  if (hadFocus) view.focus({ preventScroll: true });
  if (kept) {
    [view.scrollLeft, view.scrollTop] = kept;
    return;
  }
  const pane = parentElement.host?.closest(".st-key-gt-source");
  if (pane && pane.dataset.opened !== data.opened) {
    pane.dataset.opened = data.opened;
    // In a narrow window the source stands above the chat, perhaps out of sight.
    if (matchMedia("(max-width: 640px)").matches) pane.scrollIntoView({ block: "start" });
  }
  const first = view.querySelector(".highlight");
  if (!first) return;
  const showFirst = () => {
    const [box, frame] = [first.getBoundingClientRect(), view.getBoundingClientRect()];
    view.scrollTop += box.top - frame.top - frame.height / 3;
    view.scrollLeft += box.left - frame.left - 24;
  };
  showFirst();
  const image = view.querySelector("img");
  if (image && !image.complete) image.onload = showFirst;
}
