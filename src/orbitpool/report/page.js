"use strict";

// Filters side by side are one tab stop in which arrow keys move; the orbit of the filter that is looked at is shown below.
function showFilters(box) {
  const tiles = [...box.querySelectorAll(".filter")], orbit = box.querySelector(".orbit");
  const poses = JSON.parse(box.dataset.poses), columns = 6;
  let looked = 0, chosen = [];

  function look(k) {
    looked = k;
    tiles.forEach((tile, i) => {
      tile.tabIndex = i === k ? 0 : -1;
      tile.setAttribute("aria-current", i === k);
    });
    orbit.querySelector("p").textContent = tiles[k].getAttribute("aria-label");
    orbit.querySelectorAll(".pose").forEach((pose, s) => {
      pose.classList.toggle("chosen", chosen[k] === s);
      const tile = pose.querySelector(".tile");
      tile.style.setProperty("--row", k);
      tile.setAttribute("aria-label", `${tiles[k].dataset.name}, ${poses[s]}${chosen[k] === s ? ", chosen" : ""}`);
    });
  }

  tiles.forEach((tile, k) => {
    for (const happens of ["mouseenter", "focus", "click"]) tile.addEventListener(happens, () => look(k));
  });
  box.querySelector(".grid").addEventListener("keydown", event => {
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns, Home: -looked, End: tiles.length - 1 - looked };
    if (!(event.key in steps)) return;
    event.preventDefault();
    tiles[Math.min(Math.max(looked + steps[event.key], 0), tiles.length - 1)].focus();
  });
  look(0);

  // Filters as they are for an input: how likely each is on, in percent, and its likeliest pose.
  return function show(on, now) {
    chosen = [...now];
    tiles.forEach((tile, k) => {
      const pose = poses.length > 1 ? poses[now[k]] : "";
      tile.style.setProperty("--level", on[k] / 100);
      tile.style.setProperty("--shade", shade(on[k]));
      tile.style.setProperty("--column", now[k]);
      tile.setAttribute("aria-label", `${tile.dataset.name}: ${on[k]} % on${pose && ", " + pose}`);
      const says = tile.querySelector(".says");
      if (says) says.textContent = pose.replace(/^\w+ /, "");  // "rotate +45°" turns by +45°
    });
    look(looked);
  };
}

const shade = percent => Math.sqrt(percent / 100);  // so that what is a little on is seen
const bytes = text => Uint8Array.from(atob(text), letter => letter.charCodeAt(0));

// A digit under a slider, and what each machine makes of it; all numbers are the library's.
function explore(box) {
  const slider = box.querySelector("input[type=range]"), digit = box.querySelector(".digit");
  const angles = slider.max / slider.step + 1;
  const machines = [...box.querySelectorAll(".machine")].map(element => {
    const said = JSON.parse(element.querySelector("script").textContent);
    const on = bytes(said.on), pose = bytes(said.pose), similarity = bytes(said.similarity);
    const count = element.querySelectorAll(".filter").length, canvas = element.querySelector("canvas");
    const show = showFilters(element.querySelector(".filters"));
    const at = (numbers, d, a) => numbers.subarray((d * angles + a) * count, (d * angles + a + 1) * count);

    function drawCourse(d) {  // a column for each angle, a row for each filter, drawn where it is on
      const pen = canvas.getContext("2d"), image = pen.createImageData(angles, count);
      for (let a = 0; a < angles; a++) at(on, d, a).forEach((p, k) => { image.data[4 * (k * angles + a) + 3] = 255 * shade(p); });
      pen.putImageData(image, 0, 0);
    }

    return {
      drawCourse,
      turn(d, a) {
        show(at(on, d, a), at(pose, d, a));
        const first = at(on, d, 0), now = at(on, d, a), sum = numbers => numbers.reduce((x, y) => x + y, 0);
        const still = sum([...now].map((p, k) => Math.min(p, first[k]))) / sum(first);
        element.querySelector(".tally").textContent =
          `Of what is on at 0°, ${Math.round(100 * still)} % is on now. Similarity of all features to those at 0°: ${(similarity[d * angles + a] / 100).toFixed(2)}.`;
        element.querySelector(".here").style.left = `${100 * (a + 0.5) / angles}%`;
      },
    };
  });

  function update() {
    const choice = box.querySelector(".choices input:checked"), d = Number(choice.value), a = slider.value / slider.step;
    digit.style.setProperty("--row", d);
    digit.style.setProperty("--column", a);
    digit.setAttribute("aria-label", `${choice.dataset.name}, turned by ${slider.value}°`);
    slider.setAttribute("aria-valuetext", `${slider.value} degrees`);
    box.querySelector("output").textContent = `${slider.value}°`;
    for (const machine of machines) machine.turn(d, a);
  }

  function choose() {
    const d = Number(box.querySelector(".choices input:checked").value);
    for (const machine of machines) machine.drawCourse(d);
    update();
  }

  slider.addEventListener("input", update);
  box.querySelector(".choices").addEventListener("change", choose);
  choose();
}

document.querySelectorAll(".explorer").forEach(explore);
document.querySelectorAll(".pictures .filters").forEach(showFilters);
