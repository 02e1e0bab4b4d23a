import { expect, test } from "vitest";
import { decoded } from "./decode";

const bytes = (...values: number[]) => new Uint8Array(values);
const utf8 = (text: string) => new TextEncoder().encode(text);

test("text is read in UTF-8 with or without a mark, in UTF-16 by its mark, else as windows-1252", async () => {
  expect(await decoded(utf8("Füchse 🦊\tund\r\nHühner"))).toBe("Füchse 🦊\tund\r\nHühner");
  expect(await decoded(bytes(0xef, 0xbb, 0xbf, 0x61))).toBe("a");
  expect(await decoded(bytes(0xff, 0xfe, 0x61, 0, 0xe4, 0))).toBe("aä");
  expect(await decoded(bytes(0xfe, 0xff, 0, 0x61, 0x04, 0x16))).toBe("aЖ");
  expect(await decoded(bytes(0x46, 0xfc, 0x63, 0x68, 0x73, 0x65))).toBe("Füchse");
  expect(await decoded(utf8("\u001b[31mred\u001b[0m\f"))).toBe("\u001b[31mred\u001b[0m\f");
  expect(await decoded(bytes())).toBe("");
});

test("what is no text is told by zeros, control characters, and marks that promise other bytes", async () => {
  const png = bytes(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d);
  expect(await decoded(png)).toBeNull();
  expect(await decoded(utf8("a\0b"))).toBeNull();
  expect(await decoded(bytes(0x61, 0x01, 0x02, 0xff, 0x10))).toBeNull();
  expect(await decoded(bytes(0xff, 0xfe, 0x00, 0xd8))).toBeNull();
  expect(await decoded(bytes(0xff, 0xfe, 0x61, 0, 0, 0))).toBeNull();
  expect(await decoded(bytes(0xef, 0xbb, 0xbf, 0xff))).toBeNull();
  // Every byte equally often, as in what is packed or encrypted, but for zeros.
  const noise = Uint8Array.from({ length: 5000 }, (_, at) => 1 + ((at * 7919) % 255));
  expect(await decoded(noise)).toBeNull();
  expect(await decoded(utf8(`${"a line of a log\n".repeat(100)}\u0007`))).not.toBeNull();
});

test.each([
  [
    "gb18030",
    "编号,姓名,城市\n1,张伟,北京\n2,王芳,上海\n",
    "seC6xSzQ1cP7LLPHytAKMSzVxc6wLLGxvqkKMizN9be8LMnPuqMK",
  ],
  [
    "shift_jis",
    "番号,名前,都市\n1,山田太郎,東京\n2,鈴木花子,大阪\n",
    "lNSNhiyWvJFPLJNzjnMKMSyOUpNjkb6YWSyTjIueCjIsl+mW2InUjnEskeWN4wo=",
  ],
  ["shift_jis", "商品,価格\nりんご,100\n", "j6SVaSyJv4ppCoLogvGCsiwxMDAK"],
  [
    "big5",
    "編號,姓名,城市\n1,張偉,臺北\n2,王芳,高雄\n",
    "vXO4uSypbaZXLKuwpasKMSyxabC2LLtPpV8KMiyk/araLLCqtq8K",
  ],
  ["euc_jp", "番号,名前,都市\n1,山田太郎,東京\n", "yNa55izMvsGwLMXUu9QKMSy7s8XEwsDPuizF7LX+Cg=="],
  [
    "euc_kr",
    "번호,이름,도시\n1,김철수,서울\n2,이영희,부산\n",
    "ufjIoyzAzLinLLW1vcMKMSyx6MO2vPYsvK2/7woyLMDMv7XI8Sy6zrvqCg==",
  ],
  [
    "windows-1251",
    "Номер,Имя,Город\n1,Иван,Москва\n2,Мария,Казань\n",
    "ze7s5fAsyOz/LMPu8O7kCjEsyOLg7SzM7vHq4uAKMizM4PDo/yzK4Ofg7fwK",
  ],
  [
    "koi8-r",
    "Номер,Имя,Город\n1,Иван,Москва\n2,Мария,Казань\n",
    "7s/NxdIs6c3RLOfP0s/ECjEs6dfBziztz9PL18EKMiztwdLJ0SzrwdrBztgK",
  ],
  [
    "windows-1253",
    "Αριθμός,Όνομα,Πόλη\n1,Γιώργος,Αθήνα\n",
    "wfHp6Oz88iy87e/s4SzQ/OvnCjEsw+n+8ePv8izB6N7t4Qo=",
  ],
  ["windows-1255", "מספר,שם,עיר\n1,דוד,ירושלים\n", "7vH0+Cz57Szy6fgKMSzj5eMs6fjl+ezp7Qo="],
  ["windows-1256", "رقم,اسم,مدينة\n1,محمد,القاهرة\n", "0d7jLMfT4yzjz+3kyQoxLOPN488sx+Hex+XRyQo="],
])("a table in %s is read in its encoding: %j", async (_, text, encoded) => {
  const once = new Uint8Array(Buffer.from(encoded, "base64"));
  expect(await decoded(once)).toBe(text);
  const often = new Uint8Array(Buffer.from(encoded, "base64").length * 50);
  for (let at = 0; at < often.length; at += once.length) often.set(once, at);
  expect(await decoded(often)).toBe(text.repeat(50));
});

test.each([
  "Name;Straße;Ort\nMüller;Hauptstraße 5;Köln\nJäger;Gänseweg 2;München\n",
  "El niño comió piñas en el jardín.\n",
  "Ça va très bien, merci. Où êtes-vous ?\n",
  "Åsa går på ön",
  "x = 20 °C, y = 3 µm\n",
  "prix: 5 £, São Paulo, naïve façade",
])("a text in windows-1252 is read in it: %j", async (text) => {
  const encoded = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  expect(await decoded(encoded)).toBe(text);
});

test("a large file in an old encoding is read in less than two seconds", async () => {
  const begin = performance.now();
  expect(await decoded(new Uint8Array(4 << 20).fill(0xe4))).not.toBeNull();
  expect(performance.now() - begin).toBeLessThan(2000);
});
