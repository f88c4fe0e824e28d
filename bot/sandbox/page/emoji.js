// Emoji by their Slack names: the ones people and pagers use. An unknown name stays as it was typed.

const NAMES = `
+1 👍 -1 👎 100 💯 alarm_clock ⏰ ambulance 🚑 angry 😠 arrow_down ⬇️ arrow_left ⬅️ arrow_right ➡️ arrow_up ⬆️
arrow_upper_right ↗️ arrows_counterclockwise 🔄 art 🎨 ballot_box_with_check ☑️ bangbang ‼️ bar_chart 📊 beach_with_umbrella 🏖️
beer 🍺 bell 🔔 no_bell 🔕 black_circle ⚫ blue_heart 💙 boom 💥 bug 🐛 bulb 💡 busts_in_silhouette 👥 calendar 📅
spiral_calendar_pad 🗓️ date 📅 call_me_hand 🤙 calling 📲 chart_with_downwards_trend 📉 chart_with_upwards_trend 📈
check ✔️ clap 👏 clipboard 📋 clock1 🕐 clock3 🕒 clock9 🕘 clock12 🕛 cloud ☁️ coffee ☕ computer 💻 construction 🚧
cop 👮 crescent_moon 🌙 cry 😢 dart 🎯 desktop_computer 🖥️ dizzy 💫 email 📧 envelope ✉️ exclamation ❗ eyes 👀
fast_forward ⏩ fire 🔥 fire_engine 🚒 fireworks 🎆 floppy_disk 💾 full_moon 🌕 gear ⚙️ ghost 👻 globe_with_meridians 🌐
green_circle 🟢 large_green_circle 🟢 green_heart 💚 grey_question ❔ grin 😁 hammer 🔨 hammer_and_wrench 🛠️ hand ✋
handshake 🤝 heart ❤️ heavy_check_mark ✔️ heavy_exclamation_mark ❗ heavy_minus_sign ➖ heavy_plus_sign ➕
hourglass ⌛ hourglass_flowing_sand ⏳ house 🏠 inbox_tray 📥 information_source ℹ️ iphone 📱 joy 😂 key 🔑 label 🏷️
large_blue_circle 🔵 large_orange_circle 🟠 large_purple_circle 🟣 large_yellow_circle 🟡 large_red_square 🟥 link 🔗
lock 🔒 loudspeaker 📢 mag 🔍 mailbox 📫 medal 🏅 mega 📣 memo 📝 microscope 🔬 mobile_phone_off 📴 moon 🌔 mute 🔇
new 🆕 new_moon 🌑 no_entry ⛔ no_entry_sign 🚫 octagonal_sign 🛑 ok ☑️ ok_hand 👌 open_hands 👐 outbox_tray 📤
package 📦 page_facing_up 📄 pager 📟 palm_tree 🌴 paperclip 📎 party 🥳 partying_face 🥳 pause_button ⏸️ pencil 📝
pencil2 ✏️ phone ☎️ telephone ☎️ telephone_receiver 📞 play ▶️ point_down 👇 point_right 👉 point_up ☝️
police_car 🚓 pray 🙏 pushpin 📌 question ❓ rainbow 🌈 raised_hand ✋ raised_hands 🙌 recycle ♻️ red_circle 🔴 repeat 🔁
robot_face 🤖 rocket 🚀 rotating_light 🚨 runner 🏃 satellite 📡 scream 😱 see_no_evil 🙈 shield 🛡️ ship 🚢 shrug 🤷 sleeping 😴
sleepy 😪 slightly_smiling_face 🙂 smile 😄 smiley 😃 snail 🐌 snowflake ❄️ sob 😭 sos 🆘 sparkles ✨ speech_balloon 💬
star ⭐ stop_sign 🛑 stopwatch ⏱️ sunglasses 😎 sunny ☀️ sunrise 🌅 sweat_smile 😅 tada 🎉 thinking_face 🤔 thumbsup 👍
thumbsdown 👎 timer_clock ⏲️ tools 🛠️ traffic_light 🚦 triangular_flag_on_post 🚩 trophy 🏆 unlock 🔓 up 🆙 vibration_mode 📳
warning ⚠️ watch ⌚ wave 👋 white_check_mark ✅ white_circle ⚪ wrench 🔧 writing_hand ✍️ x ❌ yellow_heart 💛 zap ⚡ zzz 💤
black_square_for_stop ⏹️ leftwards_arrow_with_hook ↩️ arrow_right_hook ↪️ end 🔚 soon 🔜 back 🔙 bust_in_silhouette 👤
twisted_rightwards_arrows 🔀 track_next ⏭️ double_vertical_bar ⏸️ black_right_pointing_triangle ▶️ detective 🕵️ ice_cube 🧊
`;

const words = NAMES.trim().split(/\s+/);
const BY_NAME = new Map();
for (let index = 0; index < words.length; index += 2) BY_NAME.set(words[index], words[index + 1]);

export function withEmoji(text) {
  return text.replace(
    /:([a-z0-9_+-]{1,40}):(?::skin-tone-[2-6]:)?/g,
    (whole, name) => BY_NAME.get(name) ?? whole,
  );
}
