// An answer with a chip behind each claim. All foreign text is set as text, never as HTML.

const element = (name, className, text) => {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
};

export default function ({ data, parentElement, setTriggerValue }) {
  const root = element("div", "answer");
  root.dir = "auto";
  for (const piece of data.pieces) {
    const words = element("span", piece.unsupported ? "unsupported" : "", piece.text);
    root.append(words);
    if (piece.unsupported) {
      const mark = element("span", "mark", data.unsupportedMark);
      mark.title = data.unsupportedHelp;
      root.append(mark);
    }
    for (const chip of piece.chips) {
      const button = element("button", "chip");
      button.type = "button";
      button.dir = "auto";
      button.title = chip.quote;
      button.setAttribute("aria-label", chip.name);
      button.setAttribute("aria-pressed", String(chip.number === data.opened));
      button.append(element("b", "", String(chip.number)), element("span", "", chip.place));
      button.onclick = () => setTriggerValue("opened", chip.number);
      root.append("\u2060", button);
    }
  }
  const old = parentElement.querySelector(".answer");
  if (old) old.replaceWith(root);
  else parentElement.append(root);
}
