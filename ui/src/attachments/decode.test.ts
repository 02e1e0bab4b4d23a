import { expect, test } from "vitest";
import { decoded, decodedAs } from "./decode";

const bytes = (...values: number[]) => new Uint8Array(values);
const textIn = async (read: Uint8Array) => (await decoded(read))?.text;
const utf8 = (text: string) => new TextEncoder().encode(text);

test("text is read in UTF-8 with or without a mark, in UTF-16 by its mark, else as windows-1252", async () => {
  expect(await textIn(utf8("Füchse 🦊\tund\r\nHühner"))).toBe("Füchse 🦊\tund\r\nHühner");
  expect(await textIn(bytes(0xef, 0xbb, 0xbf, 0x61))).toBe("a");
  expect(await textIn(bytes(0xff, 0xfe, 0x61, 0, 0xe4, 0))).toBe("aä");
  expect(await textIn(bytes(0xfe, 0xff, 0, 0x61, 0x04, 0x16))).toBe("aЖ");
  expect(await textIn(bytes(0x46, 0xfc, 0x63, 0x68, 0x73, 0x65))).toBe("Füchse");
  expect(await textIn(utf8("\u001b[31mred\u001b[0m\f"))).toBe("\u001b[31mred\u001b[0m\f");
  expect(await textIn(bytes())).toBe("");
});

test("binary data are detected by zeros, control characters, and wrong byte order marks", async () => {
  const png = bytes(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d);
  expect(await decoded(png)).toBeNull();
  expect(await decoded(utf8("a\0b"))).toBeNull();
  expect(await decoded(bytes(0x61, 0x01, 0x02, 0xff, 0x10))).toBeNull();
  expect(await decoded(bytes(0xff, 0xfe, 0x00, 0xd8))).toBeNull();
  expect(await decoded(bytes(0xff, 0xfe, 0x61, 0, 0, 0))).toBeNull();
  expect(await decoded(bytes(0xef, 0xbb, 0xbf, 0xff))).toBeNull();
  // Every byte equally often except zeros, as in compressed or encrypted data.
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
])("a table in %s is decoded: %j", async (_, text, encoded) => {
  const once = new Uint8Array(Buffer.from(encoded, "base64"));
  expect(await textIn(once)).toBe(text);
  const often = new Uint8Array(Buffer.from(encoded, "base64").length * 50);
  for (let at = 0; at < often.length; at += once.length) often.set(once, at);
  expect(await textIn(often)).toBe(text.repeat(50));
});

test.each([
  [
    "windows-1250",
    "Příliš žluťoučký kůň úpěl ďábelské ódy. Město Praha je hlavní a současně největší město České republiky a patnácté největší město Evropské unie. Leží mírně na sever od středu Čech na řece Vltavě.",
    "UPjtbGmaIJ5sdZ1vdehr/SBr+fIg+nDsbCDv4WJlbHNr6SDzZHkuIE3sc3RvIFByYWhhIGplIGhsYXZu7SBhIHNvdehhc27sIG5lanbsdJrtIG3sc3RvIMhlc2vpIHJlcHVibGlreSBhIHBhdG7hY3TpIG5lanbsdJrtIG3sc3RvIEV2cm9wc2vpIHVuaWUuIExlnu0gbe1ybuwgbmEgc2V2ZXIgb2Qgc3T4ZWR1IMhlY2ggbmEg+GVjZSBWbHRhduwu",
  ],
  [
    "iso-8859-2",
    "Příliš žluťoučký kůň úpěl ďábelské ódy. Město Praha je hlavní a současně největší město České republiky a patnácté největší město Evropské unie. Leží mírně na sever od středu Čech na řece Vltavě.",
    "UPjtbGm5IL5sdbtvdehr/SBr+fIg+nDsbCDv4WJlbHNr6SDzZHkuIE3sc3RvIFByYWhhIGplIGhsYXZu7SBhIHNvdehhc27sIG5lanbsdLntIG3sc3RvIMhlc2vpIHJlcHVibGlreSBhIHBhdG7hY3TpIG5lanbsdLntIG3sc3RvIEV2cm9wc2vpIHVuaWUuIExlvu0gbe1ybuwgbmEgc2V2ZXIgb2Qgc3T4ZWR1IMhlY2ggbmEg+GVjZSBWbHRhduwu",
  ],
  [
    "windows-1250",
    "Zażółć gęślą jaźń. Warszawa jest stolicą Polski i województwa mazowieckiego, największym miastem kraju, położonym w jego środkowo-wschodniej części, nad Wisłą. Wielu mieszkańców pracuje w usługach.",
    "WmG/87PmIGfqnGy5IGphn/EuIFdhcnN6YXdhIGplc3Qgc3RvbGljuSBQb2xza2kgaSB3b2pld/NkenR3YSBtYXpvd2llY2tpZWdvLCBuYWp3aeprc3p5bSBtaWFzdGVtIGtyYWp1LCBwb7Nvv29ueW0gdyBqZWdvIJxyb2Rrb3dvLXdzY2hvZG5pZWogY3rqnGNpLCBuYWQgV2lzs7kuIFdpZWx1IG1pZXN6a2HxY/N3IHByYWN1amUgdyB1c7N1Z2FjaC4=",
  ],
  [
    "windows-1250",
    "Imię;Nazwisko;Miasto\nŁukasz;Wiśniewski;Łódź\nMałgorzata;Kowalczyk;Gdańsk\n",
    "SW1p6jtOYXp3aXNrbztNaWFzdG8Ko3VrYXN6O1dpnG5pZXdza2k7o/NknwpNYbNnb3J6YXRhO0tvd2FsY3p5aztHZGHxc2sK",
  ],
  [
    "iso-8859-2",
    "Imię;Nazwisko;Miasto\nŁukasz;Wiśniewski;Łódź\nMałgorzata;Kowalczyk;Gdańsk\n",
    "SW1p6jtOYXp3aXNrbztNaWFzdG8Ko3VrYXN6O1dptm5pZXdza2k7o/NkvApNYbNnb3J6YXRhO0tvd2FsY3p5aztHZGHxc2sK",
  ],
  [
    "iso-8859-2",
    "Árvíztűrő tükörfúrógép. Budapest Magyarország fővárosa, legnagyobb és legnépesebb városa, az Európai Unió egyik legnépesebb városa. Az ország politikai, művelődési, kereskedelmi és közlekedési központja.",
    "wXJ27Xp0+3L1IHT8a/ZyZvpy82fpcC4gQnVkYXBlc3QgTWFneWFyb3JzeuFnIGb1duFyb3NhLCBsZWduYWd5b2JiIOlzIGxlZ27pcGVzZWJiIHbhcm9zYSwgYXogRXVy83BhaSBVbmnzIGVneWlrIGxlZ27pcGVzZWJiIHbhcm9zYS4gQXogb3JzeuFnIHBvbGl0aWthaSwgbft2ZWz1ZOlzaSwga2VyZXNrZWRlbG1pIOlzIGv2emxla2Vk6XNpIGv2enBvbnRqYS4=",
  ],
  [
    "windows-1254",
    "Ankara, Türkiye'nin başkenti ve en kalabalık ikinci ilidir. Nüfusu beş milyonun üzerindedir. İç Anadolu Bölgesi'nde bulunan şehir, tarih boyunca birçok uygarlığa ev sahipliği yapmıştır. Güneş doğdu, ağaçlar yeşerdi.",
    "QW5rYXJhLCBU/HJraXllJ25pbiBiYf5rZW50aSB2ZSBlbiBrYWxhYmFs/WsgaWtpbmNpIGlsaWRpci4gTvxmdXN1IGJl/iBtaWx5b251biD8emVyaW5kZWRpci4g3ecgQW5hZG9sdSBC9mxnZXNpJ25kZSBidWx1bmFuIP5laGlyLCB0YXJpaCBib3l1bmNhIGJpcudvayB1eWdhcmz98GEgZXYgc2FoaXBsafBpIHlhcG39/nT9ci4gR/xuZf4gZG/wZHUsIGHwYedsYXIgeWX+ZXJkaS4=",
  ],
  [
    "windows-1254",
    "Ad;Soyad;Şehir\nAyşe;Yıldız;Eskişehir\nOğuz;Şahin;İzmir\n",
    "QWQ7U295YWQ73mVoaXIKQXn+ZTtZ/Wxk/Xo7RXNraf5laGlyCk/wdXo73mFoaW473XptaXIK",
  ],
  [
    "windows-1257",
    "Vilnius – Lietuvos sostinė ir didžiausias šalies miestas, įsikūręs pietryčių Lietuvoje prie Neries ir Vilnios upių santakos. Ąžuolas žydėjo, o ėjęs žmogus šaukė.",
    "Vmlsbml1cyCWIExpZXR1dm9zIHNvc3RpbusgaXIgZGlk/mlhdXNpYXMg8GFsaWVzIG1pZXN0YXMsIOFzaWv7cuZzIHBpZXRyeehp+CBMaWV0dXZvamUgcHJpZSBOZXJpZXMgaXIgVmlsbmlvcyB1cGn4IHNhbnRha29zLiDA/nVvbGFzIP55ZOtqbywgbyDrauZzIP5tb2d1cyDwYXVr6y4=",
  ],
  [
    "windows-1257",
    "Rīga ir Latvijas galvaspilsēta un lielākā pilsēta. Tā atrodas pie Baltijas jūras, Daugavas krastos. Šķēršļi, ģimene, ņemt, ļoti žēl.",
    "Uu5nYSBpciBMYXR2aWphcyBnYWx2YXNwaWxz53RhIHVuIGxpZWzia+IgcGlsc+d0YS4gVOIgYXRyb2RhcyBwaWUgQmFsdGlqYXMgavtyYXMsIERhdWdhdmFzIGtyYXN0b3MuINDt53Lw72ksIOxpbWVuZSwg8mVtdCwg7290aSD+52wu",
  ],
  [
    "windows-1257",
    "Tallinn on Eesti pealinn ja suurim linn. Öö, äär, õun, šokolaad, žanr ja ühtäkki.",
    "VGFsbGlubiBvbiBFZXN0aSBwZWFsaW5uIGphIHN1dXJpbSBsaW5uLiDW9iwg5ORyLCD1dW4sIPBva29sYWFkLCD+YW5yIGphIPxodORra2ku",
  ],
  [
    "windows-1250",
    "Bratislava je hlavné mesto Slovenska a najľudnatejšie mesto krajiny. Ležiace na oboch brehoch Dunaja, ľahký vietor, tŕň, vŕba, kôň.",
    "QnJhdGlzbGF2YSBqZSBobGF2bukgbWVzdG8gU2xvdmVuc2thIGEgbmFqvnVkbmF0ZWqaaWUgbWVzdG8ga3JhamlueS4gTGWeaWFjZSBuYSBvYm9jaCBicmVob2NoIER1bmFqYSwgvmFoa/0gdmlldG9yLCB04PIsIHbgYmEsIGv08i4=",
  ],
  [
    "iso-8859-2",
    "Bucureşti este capitala României, cel mai populat oraş şi cel mai important centru industrial şi comercial al ţării. Populaţia de peste un milion îi face cel mai mare oraş.",
    "QnVjdXJlunRpIGVzdGUgY2FwaXRhbGEgUm9t4m5pZWksIGNlbCBtYWkgcG9wdWxhdCBvcmG6ILppIGNlbCBtYWkgaW1wb3J0YW50IGNlbnRydSBpbmR1c3RyaWFsILppIGNvbWVyY2lhbCBhbCD+43JpaS4gUG9wdWxh/mlhIGRlIHBlc3RlIHVuIG1pbGlvbiDuaSBmYWNlIGNlbCBtYWkgbWFyZSBvcmG6Lg==",
  ],
])("a text in %s is decoded: %j", async (encoding, text, encoded) => {
  const once = new Uint8Array(Buffer.from(encoded, "base64"));
  expect(await decoded(once)).toEqual({ text, encoding });
});

test("a text is decoded in a chosen encoding", async () => {
  // "Erdős Győző" is too short to be detected as Hungarian.
  const short = bytes(0x45, 0x72, 0x64, 0xf5, 0x73, 0x20, 0x47, 0x79, 0xf5, 0x7a, 0xf5);
  expect(await decoded(short)).toEqual({ text: "Erdõs Gyõzõ", encoding: "windows-1252" });
  expect(decodedAs(short, "windows-1250")).toBe("Erdős Győző");
  expect(decodedAs(bytes(0x61, 0xff), "shift_jis")).toBe("a\ufffd");
});

test.each([
  "Name;Straße;Ort\nMüller;Hauptstraße 5;Köln\nJäger;Gänseweg 2;München\n",
  "El niño comió piñas en el jardín.\n",
  "Ça va très bien, merci. Où êtes-vous ?\n",
  "Åsa går på ön",
  "x = 20 °C, y = 3 µm\n",
  "Mañana",
  "Français",
  "Öl",
  "prix: 5 £, São Paulo, naïve façade",
])("a text in windows-1252 is decoded: %j", async (text) => {
  const encoded = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  expect(await textIn(encoded)).toBe(text);
});

test("a large file in an old encoding is read in less than two seconds", async () => {
  const begin = performance.now();
  expect(await decoded(new Uint8Array(4 << 20).fill(0xe4))).not.toBeNull();
  expect(performance.now() - begin).toBeLessThan(2000);
});
